"""Ways to protect a table; one file, one method."""
