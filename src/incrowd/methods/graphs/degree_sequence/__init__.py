"""Synthetic graphs by degree sequence."""
