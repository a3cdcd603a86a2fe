"""Outcomes: what a method lets out, one file a form."""
