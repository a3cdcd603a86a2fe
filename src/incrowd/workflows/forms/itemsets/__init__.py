"""Tables with a set of items in each row, k^m-anonymous, as a form of releases."""
