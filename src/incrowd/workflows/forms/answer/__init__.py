"""Noisy answers to questions, checked again from certificate and file."""
