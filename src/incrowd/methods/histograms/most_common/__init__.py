"""The most common bins, in order, with noisy counts or without."""
