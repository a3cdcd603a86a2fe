"""Drawing: charts, small pictures and tables as markup that is escaped by construction; it knows no certificates."""
