"""The clustering coefficient, with noise."""
