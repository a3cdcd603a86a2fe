"""Sampled suppression, piece by piece: its kernel, its inverses, the published bounds, its composition."""
