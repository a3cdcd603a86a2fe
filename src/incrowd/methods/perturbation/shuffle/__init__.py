"""Shuffle: the values of a column are dealt out again, in the order that a model of the other columns gives."""
