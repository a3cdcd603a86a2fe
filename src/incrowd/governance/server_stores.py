"""The books of a server: who may ask, and what was asked; a log that was there once is never made afresh in silence."""

from __future__ import annotations

from dataclasses import dataclass

from incrowd.errors import LedgerCorrupted, LedgerUnavailable
from incrowd.governance.access.access_list import AccessList
from incrowd.governance.audit import Audit

_AUDIT = "audit"


@dataclass(frozen=True)
class ServerStores:
    """The books that a server writes beside the ledger."""

    access: AccessList
    audit: Audit


def open_books(ledger: str) -> ServerStores:
    """Open the books beside the ledger at an address; the log is made for the first server, and its name remembered.

    >>> open_books("sqlite:////nowhere/ledger.sqlite")
    Traceback (most recent call last):
    incrowd.errors.LedgerUnavailable: nobody was admitted yet, or the book of access was lost: ...
    """
    try:
        access = AccessList.open(ledger)
    except LedgerCorrupted:
        raise
    except LedgerUnavailable as error:
        raise LedgerUnavailable(
            "nobody was admitted yet, or the book of access was lost: run incrowd access grant with this ledger, or "
            f"restore the book from a backup. In detail: {error}"
        ) from None
    audit = find_log(access, ledger) or Audit.create(ledger)
    access.remember(_AUDIT, audit.id)
    return ServerStores(access, audit)


def find_log(access: AccessList, ledger: str) -> Audit | None:
    """Open the log that a server wrote beside the ledger, or return None if none ever did; a lost one is refused."""
    if access.remembered(_AUDIT) is None:
        return None
    try:
        return Audit.open(ledger)
    except LedgerCorrupted:
        raise
    except LedgerUnavailable as error:
        raise LedgerUnavailable(f"{error} A server wrote its audit log there before: restore it.") from None
