"""Verify: recompute a chain from its first entry, and name the first entry that is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from incrowd.errors import IncrowdError
from incrowd.store.chain import Chain
from incrowd.store.chain_entry import (
    NOTHING_BEFORE,
    VERSION,
    Anchor,
    ChainEntry,
    Key,
    Seal,
    Sums,
    Tally,
    secret_of,
    text_of,
)
from incrowd.store.database import EntryRow
from incrowd.store.index import sealed_rows
from incrowd.store.transaction import Reader, follows, read_row

_BATCH = 500

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
        link = read_row(row, self.chain)
        if link is not None and expected == 1:
            self.seal = Seal(self.chain, secret_of(link.body))
        if link is None or not link.intact(self.seal, (row.body, row.sets)):
            return f"entry {expected} was changed: its hash does not match its content."
        if link.previous != (self.last.hash if self.last else NOTHING_BEFORE):
            return f"entry {expected} does not follow the one before it: entries were removed, inserted or exchanged."
        if any(anchor != link.anchor for anchor in self.anchors.get(expected, ())):
            return f"entry {expected} is not the one that the certificate names: the ledger was rewritten."
        if expected == 1 and not self._begins(link):
            return "entry 1 does not name this ledger: it was replaced."
        if expected > 1 and not self._follows(link):
            return f"entry {expected} does not follow from the entries before it: its totals are off."
        self.values.update(link.own)
        self.index.update(dict.fromkeys(link.own, expected))
        self.last = link
        return None

    def _begins(self, link: ChainEntry) -> bool:
        """Whether an entry is the first one of this chain."""
        stated = (link.kind, link.body.get("chain"), link.own, link.body.get("version"))
        return stated == ("created", self.chain, {}, VERSION) and follows(link, None, self.tally.total({}))

    def _follows(self, link: ChainEntry) -> bool:
        try:
            derived = self.derive(link, lambda key: self.values.get(text_of(key)))
            if {text_of(key): value for key, value in derived.items()} != link.own:
                return False
            return follows(link, self.last, self.tally.after(self._totals(), link))
        except (IncrowdError, KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
            return False

    def _totals(self) -> Sums:
        return self.summed() if self.last is None or self.last.totals is None else self.last.totals

    def summed(self) -> Sums:
        """Add the totals up again from the values."""
        named = {tuple(json.loads(text)): value for text, value in self.values.items()}
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
