"""Synthesis: rows that are nobody's, made from what a mechanism let out."""
