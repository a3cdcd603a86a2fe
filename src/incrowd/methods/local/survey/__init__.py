"""Surveys: what is asked, by which randomizers, and what is certified when one is opened."""
