"""Full domain: whole columns are generalized, to the levels that lose least."""
