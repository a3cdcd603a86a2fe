"""People and rules: who may ask what, and what was asked."""
