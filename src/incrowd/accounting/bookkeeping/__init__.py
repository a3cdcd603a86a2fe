"""Bookkeeping: what the ledger decides an entry by, and recomputes it from."""
