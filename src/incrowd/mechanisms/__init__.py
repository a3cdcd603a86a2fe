"""Primitives on counts and numbers: add noise, threshold, select."""
