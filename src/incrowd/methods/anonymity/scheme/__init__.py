"""Scheme: the levels of a safe release chosen by the rows themselves, under differential privacy."""
