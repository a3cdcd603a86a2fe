"""Tuning: the best of a secret random number of models, by a noisy score, at a price that is known beforehand."""
