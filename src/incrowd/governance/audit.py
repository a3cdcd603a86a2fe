"""Audit: the hash-chained log of requests and their outcomes, refusals included, without data; and how it is opened."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import Any

from incrowd.errors import LedgerCorrupted, LedgerUnavailable
from incrowd.governance.access_list import AccessList
from incrowd.store.chain import Chain
from incrowd.store.chain_entry import ChainEntry, Key
from incrowd.store.database import sibling_address
from incrowd.store.transaction import Reader, Writer
from incrowd.store.verify import ChainReport, Values, verify

_NAME = "audit"
_KIND = "event"


@dataclass(frozen=True)
class Event:
    """One action of a user, and its outcome; `about` holds names and amounts as text, never data."""

    action: str
    outcome: str
    holder: str | None = None
    grant: str | None = None
    about: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the plain form that the log stores."""
        who = {"holder": self.holder, "grant": self.grant}
        return {"action": self.action, "outcome": self.outcome, **who, "about": {**self.about}}


@dataclass(frozen=True)
class Audit:
    """The log beside a ledger.  Each entry carries the running count of its kind, so counts are the same everywhere.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     audit = Audit.create(f"sqlite:///{folder}/ledger.sqlite")
    ...     audit.write(Event("query", "answered", "ann"))
    ...     audit.write(Event("query", "answered", "bob"))
    ...     audit.counts(), audit.check().ok
    ({('query', 'answered'): 2}, True)
    """

    chain: Chain

    @classmethod
    def create(cls, ledger: str) -> Audit:
        """Create the log beside the ledger at an address if there is none, and open it."""
        return cls(Chain.create(sibling_address(ledger, _NAME), _NAME))

    @classmethod
    def open(cls, ledger: str) -> Audit:
        """Open the log beside the ledger at an address."""
        return cls(Chain.open(sibling_address(ledger, _NAME), _NAME))

    @property
    def id(self) -> str:
        """The random id that the log got when it was created."""
        return self.chain.head().chain

    def write(self, *events: Event) -> None:
        """Log events durably, all or none; a request that cannot be logged gets no answer."""
        if events:
            self.chain.transact(lambda writer: _append(writer, events))

    def read(self, after: int, limit: int) -> list[dict[str, Any]]:
        """Return up to `limit` events that follow the entry numbered `after`."""
        links = self.chain.read(lambda reader: reader.links(max(after, 1), limit))
        return [{"sequence": link.sequence, "at": link.at, "hash": link.hash, **_event_of(link)} for link in links]

    def counts(self) -> dict[tuple[str, str], int]:
        """Return how often each action had each outcome."""
        counts: dict[Key, int] = self.chain.read(lambda reader: reader.values(("count",)))
        return {(key[1], key[2]): count for key, count in counts.items()}

    def mark(self, text: str) -> str:
        """Return a keyed fingerprint of a text: the same each time, and meaningless without the log's secret."""
        return hmac.new(self._secret, text.encode(), sha256).hexdigest()[:32]

    def check(self) -> ChainReport:
        """Recompute the log from its first entry."""
        return verify(self.chain, _derive)

    @cached_property
    def _secret(self) -> bytes:
        return self.chain.read(_secret_of)


def _secret_of(reader: Reader) -> bytes:
    first = reader.links(0, 1)
    if not first or "secret" not in first[0].body:
        raise LedgerCorrupted(
            "the audit log's first entry is not one that this version writes: restore it from a backup."
        )
    return bytes.fromhex(first[0].body["secret"])


def _event_of(link: ChainEntry) -> Mapping[str, Any]:
    """Return the event of an entry; one about the log itself, which was moved or got a new secret, holds no more."""
    if link.kind == _KIND:
        return link.body
    about = {name: link.body[name] for name in ("why", "to", "from") if name in link.body}
    return Event(f"log {link.kind}", "done", link.body.get("who"), None, about).to_json()


def _append(writer: Writer, events: Sequence[Event]) -> None:
    for event in events:
        body = event.to_json()
        writer.append(_KIND, body, _counted(body, writer.value))


def _derive(link: ChainEntry, values: Values) -> dict[Key, Any]:
    return _counted(link.body, values)


def _counted(body: Mapping[str, Any], values: Values) -> dict[Key, Any]:
    key = ("count", body["action"], body["outcome"])
    return {key: (values(key) or 0) + 1}


@dataclass(frozen=True)
class ServerStores:
    """The access list and the audit log that a server writes beside the ledger."""

    access: AccessList
    audit: Audit


def open_stores(ledger: str) -> ServerStores:
    """Open access list and audit log beside a ledger; the first server creates the log, and its id is stored.

    >>> open_stores("sqlite:////nowhere/ledger.sqlite")
    Traceback (most recent call last):
    incrowd.errors.LedgerUnavailable: the access list is missing: ...
    """
    try:
        access = AccessList.open(ledger)
    except LedgerCorrupted:
        raise
    except LedgerUnavailable as error:
        raise LedgerUnavailable(
            "the access list is missing: run incrowd access grant with this ledger for a first user, or restore the "
            f"list from a backup. In detail: {error}"
        ) from None
    audit = find_audit_log(access, ledger) or Audit.create(ledger)
    access.remember(_NAME, audit.id)
    return ServerStores(access, audit)


def find_audit_log(access: AccessList, ledger: str) -> Audit | None:
    """Open the audit log beside the ledger; None if no server ever wrote one; a lost one is refused."""
    if access.remembered(_NAME) is None:
        return None
    try:
        return Audit.open(ledger)
    except LedgerCorrupted:
        raise
    except LedgerUnavailable as error:
        raise LedgerUnavailable(f"{error} A server wrote its audit log there before: restore it.") from None
