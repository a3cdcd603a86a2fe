"""Criteria: what a class of rows that look alike must satisfy before it may leave."""
