"""Shared by families: samples and their parameters, what is released, and which columns may be."""
