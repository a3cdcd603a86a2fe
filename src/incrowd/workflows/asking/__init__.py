"""Questions: understood, priced, charged, answered and kept."""
