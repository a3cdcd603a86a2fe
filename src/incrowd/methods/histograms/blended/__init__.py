"""Blended histograms: exact counts for crowds, and noise for the rest."""
