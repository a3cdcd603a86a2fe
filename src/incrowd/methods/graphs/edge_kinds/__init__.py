"""Kinds of edges: numbers of edges or degrees, kind by kind and direction by direction, with noise."""
