"""Graphs drawn from a block model of noisy counts."""
