"""Shared by methods of anonymity: demands on classes, steps that cut rows into them, checks and pictures."""
