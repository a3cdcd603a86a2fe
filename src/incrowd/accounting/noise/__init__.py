"""Additive noise: the exact δ(ε) of each law, zero-concentrated losses, and privacy loss distributions."""
