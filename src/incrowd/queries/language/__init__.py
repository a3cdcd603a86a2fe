"""The language of queries: SQL in, bound queries out."""
