"""Releases over time: a policy with periods, planned, run, shown and closed as one series."""
