"""Tables of a certain form, k-anonymous and perhaps more, as a form of releases."""
