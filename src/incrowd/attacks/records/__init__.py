"""Attacks on tables: what one who knows a few columns of a person finds."""
