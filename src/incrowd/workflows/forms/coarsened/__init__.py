"""Coarsened tables: made from a release, and checked against it."""
