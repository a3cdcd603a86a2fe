"""Rank swap: each value changes places with one of nearly the same rank."""
