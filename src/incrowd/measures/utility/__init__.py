"""Utility: what a release preserves of the original."""
