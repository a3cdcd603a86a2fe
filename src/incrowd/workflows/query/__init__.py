"""Ask: a query in, a private answer out."""
