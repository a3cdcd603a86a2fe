"""Microdata as a form: sampled, recoded, suppressed, ordered."""
