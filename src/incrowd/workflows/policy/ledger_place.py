"""Ledger place: where the ledger of a command is, decided in one order for every verb."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol
from urllib.parse import parse_qsl, urlsplit

from incrowd.errors import InvalidParameter

VARIABLE = "INCROWD_LEDGER"
"""The variable of the environment that names a ledger."""
DEFAULT = "sqlite:///.incrowd/ledger.sqlite"
_FILE = "sqlite:///"
_MEMORY = ":memory:"
_PORT = 5432


class LedgerOwner(Protocol):
    """What is charged: a policy, or a survey."""

    @property
    def folder(self) -> Path:
        """The folder whose `.incrowd` remembers the ledger."""

    @property
    def names_ledger(self) -> bool:
        """Whether its file says where the ledger is."""

    @property
    def own_ledger(self) -> str:
        """The address in its file, or the default beside it."""

    @property
    def ledger_address(self) -> str:
        """Where it is charged."""


def ledger_of(owner: LedgerOwner) -> str:
    """Return where a policy or survey is charged, by the order of `ledger_place`; its default lies beside it."""
    if owner.names_ledger:
        return ledger_place(own=owner.own_ledger)
    return ledger_place() if os.environ.get(VARIABLE) else owner.own_ledger


def ledger_place(option: str | None = None, own: str | None = None) -> str:
    """Return the address of a ledger: of the option, else of the environment, else of the policy, else the default.

    `own` is what a policy or survey itself names.  An option or a variable that names another ledger is refused:
    charges would go where nobody who reads the policy looks for them.

    >>> ledger_place(own="sqlite:////srv/one.sqlite")
    'sqlite:////srv/one.sqlite'
    >>> ledger_place("sqlite:////srv/two.sqlite", "sqlite:////srv/one.sqlite")
    Traceback (most recent call last):
    ...
    incrowd.errors.InvalidParameter: --ledger names sqlite:////srv/two.sqlite, but ledger: in the policy ...
    """
    named, by = (option, "--ledger") if option is not None else (os.environ.get(VARIABLE) or None, VARIABLE)
    if named is None:
        return absolute_address(DEFAULT, Path.cwd()) if own is None else own
    place = absolute_address(named, Path.cwd())
    if own is not None and _identity(place) != _identity(own):
        raise InvalidParameter(
            f"{by} names {public_address(place)}, but ledger: in the policy or survey names {public_address(own)}. "
            f"Nothing was charged. Leave out {by}, or change ledger: there."
        )
    return place if own is None else own


def absolute_address(address: str, folder: Path) -> str:
    """Return the address of a ledger with a relative path of a file taken from a folder.

    >>> absolute_address("sqlite:///books/one.sqlite", Path("/srv"))
    'sqlite:////srv/books/one.sqlite'
    >>> absolute_address("postgresql://me@host/privacy", Path("/srv"))
    'postgresql://me@host/privacy'
    """
    path = address.removeprefix(_FILE)
    if path in (address, _MEMORY) or Path(path).is_absolute():
        return address
    return f"{_FILE}{(folder / path).resolve().as_posix()}"


def public_address(address: str) -> str:
    """Return the address of a ledger for people and files: without a password and without options.

    >>> public_address("postgresql://me:secret@host:5433/privacy?sslmode=require")
    'postgresql://me@host:5433/privacy'
    """
    if address.startswith(_FILE):
        return address
    try:
        parts = urlsplit(address)
        port = "" if parts.port is None else f":{parts.port}"
    except ValueError:
        return f"{address.partition('://')[0]}://…"
    user = "" if parts.username is None else f"{parts.username}@"
    return f"{parts.scheme}://{user}{parts.hostname or ''}{port}{parts.path}"


def _identity(address: str) -> tuple[object, ...]:
    """Return what two addresses of one ledger have in common, however they are spelled."""
    if address.startswith(_FILE):
        path = address.removeprefix(_FILE)
        return (path,) if path == _MEMORY else (Path(path).resolve(),)
    try:
        parts = urlsplit(address)
        where = (parts.username, parts.hostname, parts.port or _PORT, parts.path)
    except ValueError:
        return (address,)
    chosen = {name: value for name, value in parse_qsl(parts.query) if name in ("host", "port", "dbname", "options")}
    return (*where, *sorted(chosen.items()))
