"""A whole method in a hundred lines: how many rows there are, with noise."""
