"""The distribution of degrees, with noise."""
