"""Histograms: how many rows lie in each bin of a public partition."""
