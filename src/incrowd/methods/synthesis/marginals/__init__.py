"""Marginals: a model of a table, fitted to noisy tables that were chosen privately, and rows drawn from it."""
