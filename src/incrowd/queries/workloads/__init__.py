"""Workloads: counting queries over one domain, answered together from fewer noisy counts by least squares."""
