"""Randomized response on pairs of nodes."""
