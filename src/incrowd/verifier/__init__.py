"""Verify: a certificate judged from outside; nothing here imports an accountant or a method."""
