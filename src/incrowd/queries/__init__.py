"""SQL queries, answered privately."""
