"""Graphs: read, profiled, released, assessed and attacked."""
