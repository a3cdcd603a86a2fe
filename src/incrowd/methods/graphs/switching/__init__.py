"""Switching: edges exchange ends, and degrees stay."""
