"""Anonymity: hide everyone in a crowd."""
