"""Coarsen: a method whose source is a released table with its certificate; it reads no rows and charges nothing."""
