"""Queries to rows, as SQL trees: only aggregates come back."""
