"""Search: the best full-domain generalization, found among all of them."""
