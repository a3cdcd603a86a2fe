"""Tables with totals: which cells are sensitive, what is left out, rounded or perturbed, and what remains inferable."""
