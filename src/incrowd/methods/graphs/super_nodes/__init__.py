"""Super-nodes: nodes are told only in groups."""
