"""SQL questions, answered privately."""
