"""Ask: a question in, a private answer out."""
