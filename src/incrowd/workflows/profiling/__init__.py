"""What is learned of a table that nobody has described yet."""
