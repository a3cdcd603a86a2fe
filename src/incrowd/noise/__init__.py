"""Noise: exact draws of randomness."""
