"""Calibration: survey weights of the rows that are left add up to what they did before."""
