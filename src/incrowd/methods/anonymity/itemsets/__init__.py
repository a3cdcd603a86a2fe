"""Itemsets: a table with a set of items in each row, made coarser until no few items tell anyone apart."""
