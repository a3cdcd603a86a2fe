"""Crowd-blending, piece by piece: its worst case after sampling, its closed forms, the theorem for each loss."""
