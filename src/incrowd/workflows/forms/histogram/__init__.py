"""Histograms as a form: counted in declared bins, protected count by count, published in order."""
