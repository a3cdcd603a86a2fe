"""Classifier: a model that predicts a class, from noisy tables, gradients or products."""
