"""PCA: the directions in which rows differ most, from noisy products."""
