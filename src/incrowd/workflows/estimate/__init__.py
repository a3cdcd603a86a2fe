"""Estimate: what a released table says about the original, corrected for known chance."""
