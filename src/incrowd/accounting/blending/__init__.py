"""Crowd-blending, piece by piece: its worst case after sampling, its closed forms, its rules."""
