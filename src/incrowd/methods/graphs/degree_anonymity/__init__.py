"""k-degree anonymity: no degree is rare."""
