"""Linked tables: people, their visits and the items of these, synthesized together with keys that match."""
