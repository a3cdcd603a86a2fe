"""Ways to make values coarser, level by level: what a hierarchy is (`hierarchy`), and one file a way."""
