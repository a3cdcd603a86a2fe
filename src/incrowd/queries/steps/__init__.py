"""Steps of a query: how it was understood, whose rows take part, what is added up, and the noise that it gets."""
