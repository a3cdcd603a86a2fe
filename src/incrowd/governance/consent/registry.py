"""Registry: the append-only book of decisions, in a chain of its own, apart from the data and from the ledger."""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from itertools import islice, takewhile
from typing import Any

from incrowd.core.codec import canonical
from incrowd.core.subjects import Subject
from incrowd.errors import IncrowdError, InvalidParameter, LedgerCorrupted, LedgerUnavailable
from incrowd.governance.consent.columns import EventColumns
from incrowd.governance.consent.event import ConsentEvent, written_moment
from incrowd.governance.consent.state import Recorded, RecordedRows, Rows
from incrowd.governance.grant import fingerprint, new_token
from incrowd.store.chain import Chain
from incrowd.store.chain_entry import Anchor, ChainEntry, Key
from incrowd.store.transaction import Writer
from incrowd.store.verify import ChainReport, Values, verify

_NAME = "consent"
_EVENTS, _ISSUED, _USED = "events", "issued", "used"
# events of an entry, of a transaction, and from how many on they are stored by columns
_BATCH, _AT_ONCE, _FEW = 2_000, 20_000, 32
_MOST = 100_000
"""More entries than a person is named in."""
_NONCE = 16  # bytes: a snapshot's name cannot be guessed
_PATIENCE = timedelta(seconds=5)  # clocks of two machines differ by less


@dataclass(frozen=True)
class RegistrySnapshot:
    """A state of the registry as a certificate names it; without the registry's secret it reveals nothing."""

    nonce: str
    mark: str


@dataclass(frozen=True)
class RegistryRows:
    """The events of a registry up to a place, batch by batch, read anew each time."""

    registry: Registry
    until: Anchor

    def __iter__(self) -> Iterator[RecordedRows]:
        for link in self.registry.links(self.until):
            if link.kind == _EVENTS:
                yield link.at, _rows_of(link)


@dataclass(frozen=True)
class Registry:
    """The consent registry at an address; its last entry and its length are never published.

    >>> from tempfile import TemporaryDirectory
    >>> from incrowd.governance.consent.event import Decided, moment
    >>> with TemporaryDirectory() as folder:
    ...     registry = Registry.create(f"sqlite:///{folder}/registry.sqlite")
    ...     registry.record([ConsentEvent("a" * 32, Decided.GIVE, "research", moment("2026-01-01"))])
    ...     [event.purpose for _, event in registry.events()], registry.holds(registry.snapshot())
    (['research'], True)
    """

    chain: Chain

    @classmethod
    def create(cls, address: str) -> Registry:
        """Make the registry at an address unless it is there already, and open it."""
        return cls(Chain.create(address, _NAME))

    @classmethod
    def open(cls, address: str) -> Registry:
        """Open the registry at an address; a missing one is an error: without it no consent is in force."""
        try:
            return cls(Chain.open(address, _NAME))
        except LedgerCorrupted:
            raise LedgerCorrupted(
                "this file is damaged, or not a consent registry: restore it, and run incrowd consent check."
            ) from None
        except LedgerUnavailable:
            raise LedgerUnavailable(
                "the consent registry cannot be opened, so no consent is in force and nothing is released. Create it "
                "with incrowd consent import or give, or restore it."
            ) from None

    def now(self) -> str:
        """Return the time by the clock, as events write it; never that of the newest event."""
        return written_moment(self.chain.clock())

    def decision_time(self) -> str:
        """Return the time of a decision that is taken now: the clock's, or that of the newest entry if that is later.

        With a clock that was set back, a withdrawal would be older than the consent that it ends.
        """
        return written_moment(self.chain.now())

    def clock(self) -> str:
        """Return the time at which a release may read the registry: now, once no entry is newer.

        With a clock that was set back, later entries would be missed, and people who withdrew would take part.
        """
        ahead = self.chain.now() - self.chain.clock()
        if ahead > _PATIENCE:
            raise LedgerUnavailable(
                "the clock of this machine is behind the newest entry of the consent registry: set it right. Nothing "
                "is released."
            )
        time.sleep(max(0.0, ahead.total_seconds()))
        return max(self.now(), written_moment(self.chain.now()))

    def record(self, events: Iterable[ConsentEvent]) -> None:
        """Record events; one with a time in the future is refused, with all events of its batch."""
        arriving = iter(events)
        while some := list(islice(arriving, _AT_ONCE)):
            self.chain.transact(lambda writer, some=some: _append(writer, some))  # type: ignore[misc]

    def events(self, until: Anchor | None = None) -> Iterator[Recorded]:
        """Yield all events with the time at which each was recorded; a changed, lost or foreign entry is an error."""
        for link in self.links(until):
            for event in _events_of(link):
                yield link.at, event

    def rows(self, until: Anchor | None = None) -> RegistryRows:
        """Return all events in the form in which they are stored, to be read as often as needed."""
        return RegistryRows(self, until or self.chain.head())

    def naming(self, *texts: str) -> list[RecordedRows]:
        """Return the batches of events in which one of some texts stands; only these entries are read."""
        links = self.chain.read(lambda reader: reader.naming(texts, _MOST))
        return [(link.at, _rows_of(link)) for link in links if link.kind == _EVENTS]

    def uses(self, purpose: str) -> bool:
        """Whether any event is about exactly this purpose."""
        return any(columns_of(rows).of("purpose", purpose).any() for _, rows in self.naming(canonical(purpose)))

    def links(self, until: Anchor | None = None) -> Iterator[ChainEntry]:
        """Yield the entries up to a place, each bound to the one before it."""
        end = until or self.chain.head()
        last = None
        for link in self.chain.links():
            follows = link.sequence == 1 if last is None else (link.sequence, link.previous) == _after(last)
            if not follows:
                raise _broken(link.sequence)
            yield link
            last = link
            if link.sequence == end.sequence:
                break
        if last is None or last.anchor != end:
            raise _broken(end.sequence)

    def decisions_of(self, person: Subject) -> list[Recorded]:
        """Return the decisions of a person, and those against that were recorded for an id written alike."""
        texts = tuple(filter(None, (person.pseudonym, person.alike)))
        return [
            (at, event)
            for at, rows in self.naming(*texts)
            for event in columns_of(rows).named(texts).events()
            if event.subject == person.pseudonym or _alike(event, person)
        ]

    def snapshot(self, at: Anchor | None = None) -> RegistrySnapshot:
        """Return a snapshot of the registry as it is, or was at a place, under a key of its own."""
        nonce = secrets.token_hex(_NONCE)
        return RegistrySnapshot(nonce, _mark(self._key(nonce), at or self.chain.head()))

    def holds(self, snapshot: RegistrySnapshot) -> bool:
        """Whether the registry was once in the state of a snapshot; a restored, truncated or rewritten one was not."""
        return self.place(snapshot) is not None

    def place(self, snapshot: RegistrySnapshot) -> Anchor | None:
        """Return the last entry at a snapshot; None if the registry was never in that state."""
        key = self._key(snapshot.nonce)
        ends = (link.anchor for link in self.links())
        return next((end for end in ends if hmac.compare_digest(_mark(key, end), snapshot.mark)), None)

    def missed(self, snapshot: RegistrySnapshot, person: Subject, run: str) -> list[ConsentEvent]:
        """Return the decisions of a person that were recorded by the time of a run, and after the run had read.

        Only entries of the seconds before the run are read: it reads the end of the registry just before its time.
        """
        since = written_moment(datetime.fromisoformat(run) - 2 * _PATIENCE)
        texts = tuple(filter(None, (person.pseudonym, person.alike)))
        links = self.chain.read(lambda reader: reader.naming(texts, _MOST))
        late = [link for link in links if link.kind == _EVENTS and since < link.at <= run]
        key = self._key(snapshot.nonce) if late else b""
        unseen = [link for link in late if not self._saw(snapshot, key, link, run)]
        return [event for link in unseen for event in _events_of(link)]

    def _saw(self, snapshot: RegistrySnapshot, key: bytes, entry: ChainEntry, run: str) -> bool:
        """Whether a snapshot is of a state that holds an entry of the seconds before it."""
        following = takewhile(lambda link: link.at <= run, self.chain.links(entry.sequence - 1))
        return any(hmac.compare_digest(_mark(key, link.anchor), snapshot.mark) for link in following)

    def issue(self, person: Subject, dataset: str, until: datetime) -> str:
        """Return a new token with which a person views and withdraws their consent, once; only its hash is stored."""
        token = new_token()
        body = {"token": fingerprint(token), "subject": person.pseudonym, "alike": person.alike}
        body |= {"dataset": dataset, "until": written_moment(until)}
        self.chain.transact(lambda writer: _issue(writer, body))
        return token

    def redeem(self, token: str, dataset: str) -> Subject | None:
        """Use a token and return its person; None for one that is unknown, used, expired or of another dataset."""
        mark = fingerprint(token)
        return None if mark is None else self.chain.transact(lambda writer: _redeem(writer, mark, dataset))

    def check(self) -> ChainReport:
        """Recompute the registry from its first entry."""
        report = verify(self.chain, _derive)
        return (
            report if report.finding is None else replace(report, finding=report.finding.replace("ledger", "registry"))
        )

    def _key(self, nonce: str) -> bytes:
        """Return the key of one snapshot, derived from a secret in the first entry that is never published."""
        first = next(self.chain.links(), None)
        if first is None or "secret" not in first.body:
            raise LedgerCorrupted("the registry's first entry is not one that this version writes: restore it.")
        return hmac.new(bytes.fromhex(first.body["secret"]), f"snapshot {nonce}".encode(), sha256).digest()


def _mark(key: bytes, at: Anchor) -> str:
    return hmac.new(key, f"{at.chain} {at.sequence} {at.hash}".encode(), sha256).hexdigest()


def _alike(event: ConsentEvent, person: Subject) -> bool:
    return not event.gives and bool(event.alike) and event.alike == person.alike


def _after(last: ChainEntry) -> tuple[int, str]:
    return last.sequence + 1, last.hash


def _append(writer: Writer, events: list[ConsentEvent]) -> None:
    if any(event.at > writer.at for event in events):
        raise InvalidParameter(
            "a decision has a time in the future, and would override later decisions: correct its time. None of these "
            "events was recorded."
        )
    for start in range(0, len(events), _BATCH):
        rows = [event.to_row() for event in events[start : start + _BATCH]]
        body = {"events": rows} if len(rows) < _FEW else {"columns": EventColumns.of_rows(rows).to_json()}
        writer.append(_EVENTS, body, {})


def columns_of(rows: Rows) -> EventColumns:
    """Return events as columns, in whichever form they are stored."""
    return rows if isinstance(rows, EventColumns) else EventColumns.of_rows(rows)


def _rows_of(link: ChainEntry) -> Rows:
    """Return the events of an entry: few stand row by row, many in columns."""
    rows: list[list[Any]] | None = link.body.get("events")
    return EventColumns.read(link.body.get("columns", {})) if rows is None else rows


def _events_of(link: ChainEntry) -> list[ConsentEvent]:
    if link.kind != _EVENTS:
        return []
    try:
        rows = _rows_of(link)
        return list(rows.events()) if isinstance(rows, EventColumns) else list(map(ConsentEvent.from_row, rows))
    except (KeyError, TypeError, ValueError, IndexError, IncrowdError):
        raise _broken(link.sequence) from None


def _derive(link: ChainEntry, values: Values) -> dict[Key, Any]:
    del values
    _events_of(link)
    return _tokens(link.kind, link.body)


def _tokens(kind: str, body: Mapping[str, Any]) -> dict[Key, Any]:
    """Return what an entry says about tokens: who has one, and that one was used."""
    if kind == _ISSUED:
        return {("token", body["token"]): {name: text for name, text in body.items() if name != "token"}}
    return {("token", body["token"]): None} if kind == _USED else {}


def _issue(writer: Writer, body: dict[str, Any]) -> None:
    writer.append(_ISSUED, body, _tokens(_ISSUED, body))


def _redeem(writer: Writer, mark: str, dataset: str) -> Subject | None:
    stored = writer.value(("token", mark))
    if stored is None or stored["dataset"] != dataset or stored["until"] <= writer.at:
        return None
    writer.append(_USED, {"token": mark}, _tokens(_USED, {"token": mark}))
    return Subject(stored["subject"], stored.get("alike", ""))


def _broken(sequence: int) -> LedgerCorrupted:
    return LedgerCorrupted(
        f"entry {sequence} of the consent registry was changed, lost or exchanged, so no consent is in force and "
        "nothing is released. Run incrowd consent check, and restore the registry from a backup."
    )
