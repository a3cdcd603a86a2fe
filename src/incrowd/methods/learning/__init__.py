"""Learning: models whose promise comes from the schema alone, made from integer contributions with noise."""
