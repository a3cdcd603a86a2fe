"""Ways to protect a graph: who is connected with whom."""
