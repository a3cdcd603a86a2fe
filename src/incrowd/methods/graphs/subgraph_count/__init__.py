"""Numbers of edges, triangles and stars, with noise."""
