"""Randomizers whose chances are ratios of whole numbers, so that their loss holds exactly."""
