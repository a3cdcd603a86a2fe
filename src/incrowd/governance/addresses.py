"""Where the other books of a ledger lie: in files beside it, or in tables of the same database."""

from __future__ import annotations

from pathlib import PurePosixPath

_SQLITE = "sqlite:///"


def beside(ledger: str, name: str) -> str:
    """Return the address of the book called `name` that belongs to the ledger at an address.

    >>> beside("sqlite:////srv/.incrowd/ledger.sqlite", "access")
    'sqlite:////srv/.incrowd/ledger.access.sqlite'
    >>> beside("postgresql://me@host/privacy", "access")
    'postgresql://me@host/privacy'
    """
    if not ledger.startswith(_SQLITE):
        return ledger
    path = PurePosixPath(ledger.removeprefix(_SQLITE))
    return f"{_SQLITE}{path.with_name(f'{path.stem}.{name}{path.suffix}')}"
