"""What is left of a table for those who want to learn from it."""
