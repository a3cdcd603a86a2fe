"""Check: whether a table is safe as it is."""
