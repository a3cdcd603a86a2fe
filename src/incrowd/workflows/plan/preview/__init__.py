"""Look: how many rows each of several choices of levels, k and rate would keep, with noise that is charged."""
