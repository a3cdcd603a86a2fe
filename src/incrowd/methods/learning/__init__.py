"""Learning: models whose guarantee comes from the schema alone, made from integer contributions with noise."""
