"""Attacks on histories: several rows a person, of which a few are known."""
