"""Measures: numbers computed from a release; they guarantee nothing."""
