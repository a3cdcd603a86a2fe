"""Tables with missing cells, k-anonymous in one sense of missing or the other, as a form of releases."""
