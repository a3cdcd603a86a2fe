"""Assess: what a release lost, and what is left to find in it; for the data holder alone."""
