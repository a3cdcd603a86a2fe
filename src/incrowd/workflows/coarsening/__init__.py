"""Coarsening: a released table made coarser, from what was released and from nothing else."""
