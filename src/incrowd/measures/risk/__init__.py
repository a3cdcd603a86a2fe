"""Disclosure risk: what attackers gain from a table."""
