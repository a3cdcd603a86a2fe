"""Selections as a form: candidates counted, noise on every count, winners in order."""
