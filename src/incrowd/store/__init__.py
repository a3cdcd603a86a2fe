"""Append-only, hash-chained tables on disk."""
