"""Tree: a model of a table that is a tree of pairs of columns, and rows drawn from it."""
