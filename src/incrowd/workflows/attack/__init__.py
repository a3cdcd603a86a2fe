"""Attack: the attack lab on a release, or on any two tables; for the data holder alone."""
