"""Interruption: whether work was stopped from outside, in whatever words the engine below tells it."""

from __future__ import annotations

_DUCKDB = "Query interrupted"


def is_interruption(error: BaseException) -> bool:
    """Whether an error is Ctrl-C or a signal; inside DuckDB it arrives as a plain error with words of its own.

    >>> is_interruption(KeyboardInterrupt()), is_interruption(RuntimeError("Query interrupted"))
    (True, True)
    >>> is_interruption(RuntimeError("no such thing"))
    False
    """
    return isinstance(error, KeyboardInterrupt) or (type(error) is RuntimeError and str(error) == _DUCKDB)
