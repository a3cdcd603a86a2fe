"""Suppression rules of statistical offices: what such a rule guarantees, and what not."""
