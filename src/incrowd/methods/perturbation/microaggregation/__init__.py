"""Microaggregation: rows stand in groups of at least k, and every row shows the means of its group."""
