"""The PostgreSQL door: the query service of a server for tools that speak PostgreSQL's protocol."""
