"""Syntactic: what tables have in common whose rows stand in classes: demands, steps, and how they are checked."""
