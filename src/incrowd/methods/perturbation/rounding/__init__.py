"""Rounding: numbers become multiples of a base."""
