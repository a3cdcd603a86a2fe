"""Expressions: how each kind of expression over the columns of a row is understood."""
