"""Consent: who may take part, what leaves with a withdrawal, and what a person can ask."""
