"""PRAM: categories change at random by a matrix of probabilities, from which frequencies can be estimated."""
