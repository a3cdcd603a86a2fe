"""Imports: projects of other programs, as a policy with hierarchies and data."""
