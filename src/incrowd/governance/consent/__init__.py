"""Consent: what people decided about the use of their data, as events that only grow."""
