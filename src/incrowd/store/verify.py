"""Verify: recompute a chain from its first entry, and name the first entry that is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from incrowd.core.codec import parsed, reread
from incrowd.errors import IncrowdError, InvalidParameter
from incrowd.store.chain import Chain
from incrowd.store.chain_entry import (
    ARRIVED,
    MOVED,
    NOTHING_BEFORE,
    RENEWALS,
    RENEWED,
    RUNNING,
    SECRET_BYTES,
    VERSION,
    Anchor,
    ChainEntry,
    Key,
    Seal,
    Sums,
    Tally,
    is_sealed,
    secret_of,
    text_of,
)
from incrowd.store.database import EntryRow
from incrowd.store.index import sealed_rows
from incrowd.store.transaction import Reader

_BATCH = 500  # entries checked at a time, so that any ledger fits into memory

Values = Callable[[Key], Any]
Derive = Callable[[ChainEntry, Values], Mapping[Key, Any]]


@dataclass(frozen=True)
class ChainReport:
    """The result of a check: how many entries are in order, and the first one that is not."""

    head: Anchor
    entries: int
    bad: int | None = None
    finding: str | None = None

    @property
    def ok(self) -> bool:
        """Whether no problem was found."""
        return self.finding is None


@dataclass
class _Replay:
    """The state of a chain as its entries tell it, while they are read in order."""

    chain: str
    anchors: Mapping[int, Sequence[Anchor]]
    derive: Derive
    tally: Tally
    seal: Seal
    last: ChainEntry | None = None
    values: dict[str, Any] = field(default_factory=dict)
    index: dict[str, int] = field(default_factory=dict)

    @property
    def end(self) -> int:
        return self.last.sequence if self.last else 0

    def follow(self, row: EntryRow) -> str | None:
        """Take one more entry, or say what is wrong with it."""
        expected = self.end + 1
        if row.sequence != expected:
            return f"entry {expected} is missing: the next one is entry {row.sequence}."
        link = self._read(row)
        if link is None:
            return f"entry {expected} was changed: its hash does not match its content."
        if link.previous != (self.last.hash if self.last else NOTHING_BEFORE):
            return f"entry {expected} does not follow the one before it: entries were removed, inserted or exchanged."
        if any(anchor != link.anchor for anchor in self.anchors.get(expected, ())):
            return f"entry {expected} is not the one that the certificate names: the ledger was rewritten."
        if (link.kind == ARRIVED) != (self.last is not None and self.last.kind == MOVED):
            return (
                f"entry {expected} does not follow from a move: a ledger that was moved goes on at its new place only."
            )
        derived = self._begun(link, row) if expected == 1 else self._derived(link, row)
        if derived is None and expected == 1:
            return "entry 1 does not name this ledger: it was replaced."
        if derived is None:
            return f"entry {expected} does not follow from the entries before it: its totals are off."
        own = derived.own
        self.values.update(own)
        self.index.update(dict.fromkeys(own, expected))
        self.last = derived
        if derived.kind == RENEWED:
            self.seal = self.seal.renewed(derived)
        return None

    def _read(self, row: EntryRow) -> ChainEntry | None:
        """Return an entry without what it sets, or None if its hash is another one or its text cannot be read."""
        try:
            body = parsed(row.body)
            if row.sequence == 1:
                self.seal = Seal(self.chain, secret_of(body))
        except (InvalidParameter, TypeError):  # TypeError: a column of a damaged row holds no text
            return None
        if not is_sealed(row, self.seal):
            return None
        return ChainEntry(self.chain, row.sequence, row.at, row.kind, body, {}, row.previous, row.hash)

    def _begun(self, link: ChainEntry, row: EntryRow) -> ChainEntry | None:
        """Return the first entry with what it must set; None if it is not the first one of this chain."""
        stated = (link.kind, link.body.get("chain"), link.body.get("version"))
        whole = _setting(link, {RUNNING: dict(self.tally.total({}))})
        return whole if stated == ("created", self.chain, VERSION) and reread(whole.sets) == row.sets else None

    def _derived(self, link: ChainEntry, row: EntryRow) -> ChainEntry | None:
        """Return an entry with what it must set, given the entries before it; None if it sets something else."""
        try:
            sets = self._sets(link)
            own = {text_of(key): value for key, value in sets.items()}
            totals = self.tally.after(self._totals(), _setting(link, own))
            whole = _setting(link, {**own, RUNNING: dict(totals)})
            in_time = self.last is not None and link.at >= self.last.at
            return whole if in_time and reread(whole.sets) == row.sets else None
        # whatever a forged entry breaks here: it is not sealed
        except (IncrowdError, KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
            return None

    def _sets(self, link: ChainEntry) -> Mapping[Key, Any]:
        """Return what an entry must set: those about the chain itself are the same in every chain."""
        if link.kind in (MOVED, ARRIVED):
            return {}
        if link.kind == RENEWED:
            if len(secret_of(link.body)) != SECRET_BYTES:
                raise InvalidParameter("a secret has another length.")
            return {RENEWALS: [*self.values.get(text_of(RENEWALS), ()), link.sequence]}
        return self.derive(link, lambda key: self.values.get(text_of(key)))

    def _totals(self) -> Sums:
        return self.tally.total({}) if self.last is None or self.last.totals is None else self.last.totals

    def summed(self) -> Sums:
        """Add the totals up again from the values."""
        first = text_of(self.tally.under)[:-1]
        named = {tuple(json.loads(text)): value for text, value in self.values.items() if text.startswith(first)}
        length = len(self.tally.under)
        return self.tally.total({key: value for key, value in named.items() if key[:length] == self.tally.under})

    def close(self, head: Anchor, rows: Sequence[Mapping[str, Any]]) -> tuple[int, str] | None:
        """Compare what the entries tell with the head, the certificates and the index."""
        beyond = max(self.anchors, default=0)
        if head.sequence != self.end:
            bad = min(head.sequence, self.end) + 1
            return bad, f"entry {bad} is missing: the ledger's head names entry {head.sequence}, it holds {self.end}."
        if self.last is None or head != self.last.anchor:
            return self.end, f"entry {self.end} is not the one that the ledger's head names."
        if self.summed() != self.last.totals:
            return self.end, f"entry {self.end} carries totals that are not those of the datasets."
        if beyond > self.end:
            return self.end + 1, (
                f"entry {self.end + 1} is missing: the certificate names entry {beyond}, the ledger ends at entry "
                f"{self.end}. Its tail was cut off, or an old copy was restored."
            )
        return self._compare(rows)

    def _compare(self, rows: Sequence[Mapping[str, Any]]) -> tuple[int, str] | None:
        actual = {row["key"]: row for row in rows}
        for row in sealed_rows(self.seal, self.index):
            if actual.pop(row["key"], None) != row:
                bad = row["sequence"]
                return bad, f"entry {bad} was the last to set {row['key'] or 'nothing'}; the index says otherwise."
        if actual:
            return self.end, f"entry {self.end} is the last one; the index names keys that no entry up to it sets."
        return None


def _setting(link: ChainEntry, sets: Mapping[str, Any]) -> ChainEntry:
    """Return an entry with what it sets; `replace` takes four times as long, and this is done for every entry."""
    return ChainEntry(link.chain, link.sequence, link.at, link.kind, link.body, sets, link.previous, link.hash)


def verify(chain: Chain, derive: Derive, against: Iterable[Anchor] = ()) -> ChainReport:
    """Check hashes, order, totals and index of a chain, and that it holds the places `against`.

    `derive` says what an entry must set, given the values before it.  Entries are read in short transactions, so that
    nobody waits for a long check; only the last batch is read together with the head and the index.
    """
    anchors = list(against)
    head = chain.inspect(lambda reader: reader.head)
    strangers = [anchor for anchor in anchors if anchor.chain != head.chain]
    if strangers:
        return ChainReport(
            head, 0, 1, "entry 1 is not that of the ledger the certificate names: this is another ledger."
        )
    replay = _Replay(head.chain, _by_sequence(anchors), derive, chain.tally, Seal(head.chain))
    while True:
        rows, head, pointers = chain.inspect(lambda reader: _batch(reader, replay.end))
        for row in rows:
            if finding := replay.follow(row):
                return ChainReport(head, replay.end, replay.end + 1, finding)
        if pointers is not None:
            bad = replay.close(head, pointers)
            return ChainReport(head, replay.end, *bad) if bad else ChainReport(head, replay.end)


def _batch(reader: Reader, after: int) -> tuple[Sequence[EntryRow], Anchor, Sequence[Mapping[str, Any]] | None]:
    rows = reader.rows(after, _BATCH)
    return rows, reader.head, reader.index.rows() if len(rows) < _BATCH else None


def _by_sequence(anchors: Iterable[Anchor]) -> dict[int, list[Anchor]]:
    by_sequence: dict[int, list[Anchor]] = {}
    for anchor in anchors:
        by_sequence.setdefault(anchor.sequence, []).append(anchor)
    return by_sequence
