"""Hide everyone in a crowd, and prove it."""

__version__ = "0.1.0"
