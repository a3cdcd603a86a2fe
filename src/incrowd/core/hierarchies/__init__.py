"""The ways to make values coarser; one file, one way."""
