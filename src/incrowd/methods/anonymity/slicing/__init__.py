"""Slicing: columns in groups, and each group released as a safe table of its own."""
