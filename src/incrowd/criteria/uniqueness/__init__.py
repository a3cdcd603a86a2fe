"""Population uniqueness: how many of the released rows are alone in a population, by an estimate from the rows."""
