"""Making hierarchies, and finding what is wrong with them."""
