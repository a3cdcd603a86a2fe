"""Orthogonal: rows are rotated among each other, which keeps means and covariances."""
