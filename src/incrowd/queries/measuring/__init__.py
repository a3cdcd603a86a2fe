"""How a query is measured: exact statistics, one noise for all of them, and what can be read off."""
