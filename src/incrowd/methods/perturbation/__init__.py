"""Perturbation: values of rows are masked. What a mask preserves is proved; how well it hides people is measured."""
