"""Attacks on tables: by an adversary who knows a few columns of a person."""
