"""Surveys without a server: plan, open, randomize, estimate."""
