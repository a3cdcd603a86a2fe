"""Crowds: what methods of several families share: samples and their parameters, drawing, and claims."""
