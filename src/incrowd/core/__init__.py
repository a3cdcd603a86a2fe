"""The nouns: frozen values and protocols; no I/O, no randomness."""
