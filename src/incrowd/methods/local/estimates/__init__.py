"""What reports say about the people who sent them: unbiased estimates and exact intervals."""
