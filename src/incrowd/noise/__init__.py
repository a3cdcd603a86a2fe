"""Chance, drawn exactly."""
