"""Published tables: counts with hidden cells as people publish them, and what a reader can recompute of those."""
