"""What several methods of graphs use: how edges are read, claims, outputs, checks, pictures and matrices."""
