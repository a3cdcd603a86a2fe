"""Noise: numbers get noise in proportion to how much they vary."""
