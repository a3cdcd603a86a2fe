"""Suppressed histograms: exact counts for crowds, and zero for the rest."""
