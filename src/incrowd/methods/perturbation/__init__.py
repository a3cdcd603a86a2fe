"""Perturbation: values are changed, so that a row is no longer quite a person's; what is kept of a table is proved."""
