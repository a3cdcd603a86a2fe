"""Numbers read off a graph: how rare its nodes are, and what a release keeps of it."""
