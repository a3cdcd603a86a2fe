"""A first policy, drafted from the rows it will protect: a start for its owner, never a promise."""
