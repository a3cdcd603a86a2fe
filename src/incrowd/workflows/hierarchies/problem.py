"""Fault: something wrong with a hierarchy, named in full, with a way out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """What is wrong with which value, how many rows of the data it concerns (None: none were read), and a fix.

    `fix` is a sentence; `paste` is a row that can be put into the hierarchy as it is.
    """

    what: str
    value: str
    rows: int | None = None
    column: str | None = None
    fix: str = ""
    paste: tuple[str, ...] | None = None
