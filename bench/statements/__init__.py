"""Statements of analysts in the styles of their tools, and how many of them are answered."""
