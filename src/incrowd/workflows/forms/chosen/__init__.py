"""Microdata whose levels were chosen privately, as a form."""
