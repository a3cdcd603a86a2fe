"""Local collection: people randomize before they send, and the collector never holds raw values."""
