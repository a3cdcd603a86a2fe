"""Places: where the ledger of a command is and where it keeps its state, decided in one order for every verb."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import parse_qsl, urlsplit

from incrowd.errors import InvalidParameter

VARIABLE = "INCROWD_LEDGER"
"""The variable of the environment that names a ledger; --ledger of a command sets it."""
STATE = "INCROWD_STATE"
"""The variable of the environment that names the folder for what is kept beside policies."""
_CHOSEN = f"--ledger or {VARIABLE}"
DEFAULT = "sqlite:///.incrowd/ledger.sqlite"
_BESIDE = ".incrowd"
_LEDGER = "ledger.sqlite"
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
    return ledger_place() if os.environ.get(VARIABLE) or os.environ.get(STATE) else owner.own_ledger


def state_folder(folder: Path) -> Path:
    """Return where what belongs to the policies of a folder is kept: where the environment says, else beside them."""
    chosen = os.environ.get(STATE)
    return Path.cwd() / chosen if chosen else folder / _BESIDE


def ledger_place(option: str | None = None, own: str | None = None) -> str:
    """Return the address of a ledger: of the option, else of the environment, else of the policy, else the default.

    The default lies in the folder for state.

    `own` is what a policy or survey itself names.  An option or a variable that names another ledger is refused:
    charges would go where nobody who reads the policy looks for them.

    >>> ledger_place(own="sqlite:////srv/one.sqlite")
    'sqlite:////srv/one.sqlite'
    >>> ledger_place("sqlite:////srv/two.sqlite", "sqlite:////srv/one.sqlite")
    Traceback (most recent call last):
    ...
    incrowd.errors.InvalidParameter: --ledger or INCROWD_LEDGER names sqlite:////srv/two.sqlite, but ledger: in ...
    """
    named = option if option is not None else os.environ.get(VARIABLE) or None
    if named is None:
        return f"{_FILE}{(state_folder(Path.cwd()) / _LEDGER).resolve().as_posix()}" if own is None else own
    place = absolute_address(named, Path.cwd())
    if own is not None and _identity(place) != _identity(own):
        raise InvalidParameter(
            f"{_CHOSEN} names {public_address(place)}, but ledger: in the policy or survey names "
            f"{public_address(own)}. Nothing was charged. Leave it out, or change ledger: there."
        )
    return place if own is None else own


@dataclass(frozen=True)
class PlaceSetting:
    """A setting outside of policies: its name, its value, and what decided it."""

    name: str
    value: str
    by: str

    @property
    def changes(self) -> bool:
        """Whether it is the ledger, which always counts, or was decided outside of defaults."""
        return self.name == "ledger" or self.by != "default"


def places(owner: LedgerOwner | None, option: str | None = None) -> tuple[PlaceSetting, ...]:
    """Return every place of a command, for a policy or for this folder; contradictions are refused."""
    from incrowd.engines.worker import SETTING, is_off
    from incrowd.workflows.events import VARIABLE as LOG

    named = owner is not None and owner.names_ledger
    own = owner.own_ledger if owner is not None and named else None
    state = state_folder(Path.cwd() if owner is None else owner.folder)
    beside = f"{_FILE}{(state / _LEDGER).resolve().as_posix()}"
    chosen = option is not None or os.environ.get(VARIABLE) or named
    ledger = ledger_place(option, own) if chosen else beside
    kept_by = f"--state or {STATE}" if os.environ.get(STATE) else "default"
    by = "policy" if named else kept_by
    if option is not None or os.environ.get(VARIABLE):
        by = _CHOSEN
    return (
        PlaceSetting("ledger", public_address(ledger), by),
        PlaceSetting("state", str(state), kept_by),
        PlaceSetting("log", os.environ.get(LOG) or "none", f"--log or {LOG}" if os.environ.get(LOG) else "default"),
        PlaceSetting(
            "limits for files of others", "off" if is_off() else "on", SETTING if SETTING in os.environ else "default"
        ),
    )


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
