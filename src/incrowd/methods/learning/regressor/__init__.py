"""Regressor: a model that predicts a number, by least squares from noisy products."""
