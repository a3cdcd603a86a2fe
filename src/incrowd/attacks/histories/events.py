"""Events: who did what, row by row; the histories of people, published under pseudonyms, beside the true ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.attacks.candidates import CodedColumns, Codes, ColumnMatch, match, together
from incrowd.attacks.cover import numbers, spans, texts
from incrowd.attacks.finding import Finding, Rate, Risk
from incrowd.attacks.knowledge import Knowledge, PublishedTable
from incrowd.errors import InvalidParameter

_CELLS, _PAIRS = 1 << 22, 1 << 22
Numbers = NDArray[np.float64]
_OUTSIDE = "\N{SYMBOL FOR UNIT SEPARATOR}outside"
_WHOSE = "whose"


@dataclass(frozen=True, eq=False)
class HistoryPart:
    """How much, or when: a column of people's events and of published ones as numbers, and what counts as near."""

    name: str
    people: Numbers
    published: Numbers
    scale: float


@dataclass(frozen=True, eq=False)
class Histories:
    """Published histories beside those of people: whose each event is, which item, and how much or when.

    People in the data come first, then outsiders.  `item` has the items of people's events as values and those of
    published events as labels.
    """

    item: ColumnMatch
    published: Codes
    people: Codes
    inside: int
    parts: tuple[HistoryPart, ...]
    knowledge: Knowledge
    table: pa.Table

    @classmethod
    def of(cls, published: PublishedTable, knowledge: Knowledge, outsiders: pa.Table | None) -> Histories:
        """Read events on both sides."""
        if knowledge.item is None:
            raise InvalidParameter(
                "this attack looks at items, such as films, goods or words: name their column with --item."
            )
        held = _long(published.table, knowledge)
        if not held.num_rows or not knowledge.people.num_rows:
            raise InvalidParameter("there is nobody to attack, or nothing was published: both need rows.")
        people = _long(knowledge.people, knowledge)
        everyone = people
        if outsiders is not None:
            everyone = together(people, _long(outsiders, knowledge, _OUTSIDE))
        whose, first = CodedColumns.of(everyone.column(_WHOSE)), people.num_rows
        inside = np.unique(whose.codes[:first])
        rank = np.argsort(np.argsort(~np.isin(np.arange(len(whose.texts)), inside), kind="stable"), kind="stable")
        item = match(PublishedTable(held, published.lookups), everyone, knowledge.item)
        parts = []
        for name in knowledge.known:
            if name not in (knowledge.item, knowledge.person) and name in held.column_names:
                ours, theirs = (CodedColumns.of(table.column(name)) for table in (everyone, held))
                scale = knowledge.slack.get(name) or 1.0
                parts.append(
                    HistoryPart(name, numbers(ours.texts)[ours.codes], numbers(theirs.texts)[theirs.codes], scale)
                )
        owners = CodedColumns.of(held.column(_WHOSE)).codes
        return cls(item, owners, rank[whose.codes], len(inside), tuple(parts), knowledge, everyone)

    @property
    def targets(self) -> int:
        """How many people are attacked, outsiders among them."""
        return int(self.people.max()) + 1

    @property
    def number(self) -> int:
        """How many histories were published."""
        return int(self.published.max()) + 1

    def glimpses(self) -> Codes:
        """Return the events that the attacker knows: a few of each person's, drawn at random."""
        events = np.lexsort([*(each.people for each in self.parts), self.item.values.codes, self.people])
        mixed = events[self.knowledge.chance.permutation(len(events))]
        mixed = mixed[np.argsort(self.people[mixed], kind="stable")]
        owner = self.people[mixed]
        place = np.arange(len(mixed)) - np.searchsorted(owner, owner)
        return mixed[place < self.knowledge.few]

    def attacked(self) -> Codes:
        """Return who is attacked: at most so many people in the data, and as many outsiders."""
        most, chance = self.knowledge.trials, self.knowledge.chance
        ours, theirs = np.arange(self.inside), np.arange(self.inside, self.targets)
        return np.concatenate([np.sort(chance.permutation(each)[:most]) for each in (ours, theirs)])

    def scores(self, glimpses: Codes, known: Sequence[Numbers], weights: Numbers) -> Iterator[tuple[Codes, Numbers]]:
        """Yield blocks of people, each with the score of every published history; `known` is about what is known."""
        order = np.argsort(self.item.labels.codes, kind="stable")
        starts = np.searchsorted(self.item.labels.codes[order], np.arange(len(self.item.labels.texts) + 1))
        attacked, step = self.attacked(), max(1, _CELLS // self.number)
        owner = self.people[glimpses]
        for begin in range(0, len(attacked), step):
            block = attacked[begin : begin + step]
            chosen = np.flatnonzero(np.isin(owner, block))
            total = np.zeros(len(block) * self.number)
            for events in np.array_split(chosen, max(1, len(chosen) * len(order) // len(starts) // _PAIRS)):
                event, published = self._pairs(glimpses, events, order, starts)
                alike = weights[self.item.labels.codes[published]]
                if self.parts:
                    alike = alike * np.mean(
                        [
                            np.nan_to_num(np.exp(-np.abs(ours[event] - part.published[published]) / part.scale))
                            for ours, part in zip(known, self.parts, strict=True)
                        ],
                        axis=0,
                    )
                cell = np.searchsorted(block, owner[event]) * self.number + self.published[published]
                total += (
                    _best_of_each(event, cell, alike, len(total))
                    if self.repeats
                    else np.bincount(cell, alike, len(total))
                )
            yield block, total.reshape(len(block), self.number)

    @cached_property
    def repeats(self) -> bool:
        """Whether a known event can meet several events of one history."""
        pairs = np.unique(self.item.labels.codes * self.number + self.published)
        return len(pairs) < len(self.published) or bool((np.diff(self.item.cover.starts) > 1).any())

    def _pairs(self, glimpses: Codes, events: Codes, order: Codes, starts: Codes) -> tuple[Codes, Codes]:
        """Return pairs of a known event (its place among the glimpses) and a published one of the same item."""
        cover, value = self.item.cover, self.item.values.codes[glimpses[events]]
        low, high = cover.starts[value], cover.starts[value + 1]
        label, event = cover.labels[spans(low, high)], np.repeat(events, high - low)
        low, high = starts[label], starts[label + 1]
        return np.repeat(event, high - low), order[spans(low, high)]

    def support(self) -> Codes:
        """Return in how many published histories each label occurs."""
        pairs = np.unique(self.item.labels.codes * self.number + self.published)
        return np.bincount(pairs // self.number, minlength=len(self.item.labels.texts))

    def right(self, claims: Codes) -> NDArray[np.bool_]:
        """Return for each person whether a claimed history (−1 for none) holds at least half of the person's events."""
        exact = [self.item.labels.codes, *(part.published for part in self.parts)]
        label = _labels(self.item)
        ours = [label, *(part.people for part in self.parts)]
        keys = _keys(
            [
                np.concatenate([a, b])
                for a, b in zip([claims[self.people], *ours], [self.published, *exact], strict=True)
            ]
        )
        own, held = keys[: len(self.people)], keys[len(self.people) :]
        there = np.isin(own, held) & (claims[self.people] >= 0) & (label >= 0)
        number = np.bincount(self.people, minlength=self.targets)
        return np.asarray(2 * np.bincount(self.people, there, self.targets) >= np.maximum(number, 1), bool) & (
            claims >= 0
        )

    def finding(self, attack: str, knows: str, claims: Codes, story: tuple[str, ...]) -> Finding:
        """Return the finding; a blind guess takes the longest history for everybody's."""
        attacked = self.attacked()
        ours, theirs = attacked[attacked < self.inside], attacked[attacked >= self.inside]
        hits = self.right(claims)
        longest = int(np.bincount(self.published).argmax())
        blind = self.right(np.full(self.targets, longest))
        outside = Rate(int(hits[theirs].sum()), len(theirs)) if len(theirs) else None
        success, guess = (Rate(int(each[ours].sum()), len(ours)) for each in (hits, blind))
        return Finding(attack, Risk.LINKABILITY, knows, success, guess, outside, story)

    def words(self, events: Codes) -> str:
        """Return some events in words."""
        columns = [name for name in (self.knowledge.item, *self.knowledge.known) if name in self.table.column_names]
        rows = self.table.select(list(dict.fromkeys(columns))).take(np.sort(events)).to_pylist()
        return "; ".join(" ".join(str(value) for value in row.values()) for row in rows)


def _long(table: pa.Table, knowledge: Knowledge, mark: str = "") -> pa.Table:
    """Return one row an event, with whose it is; without a person column every row is a history of its own."""
    if knowledge.item not in table.column_names:
        raise InvalidParameter(f"{knowledge.item!r} is no column of both what was published and the data.")
    named = knowledge.person in table.column_names if knowledge.person else False
    whose = texts(table.column(knowledge.person)) if named else np.arange(table.num_rows).astype(str)
    table = table.append_column(_WHOSE, pa.array([f"{mark}{each}" for each in whose.tolist()]))
    if knowledge.separator is None:
        return table
    sets = pc.split_pattern(pc.fill_null(pc.cast(table.column(knowledge.item), pa.string()), ""), knowledge.separator)
    sets = sets.combine_chunks() if isinstance(sets, pa.ChunkedArray) else sets
    parents, items = pc.list_parent_indices(sets), pc.utf8_trim_whitespace(pc.list_flatten(sets))
    long = table.take(parents).set_column(table.column_names.index(knowledge.item), knowledge.item, items)
    return long.filter(pc.not_equal(items, ""))


def _labels(item: ColumnMatch) -> Codes:
    """Return for each person's event a label that covers its item, −1 if none does."""
    first = item.cover.starts[:-1]
    some = np.diff(item.cover.starts) > 0
    label = np.full(len(first), -1)
    label[some] = item.cover.labels[first[some]]
    return label[item.values.codes]


def _keys(columns: Sequence[Codes | Numbers]) -> Codes:
    """Return one number for each distinct tuple."""
    found = np.zeros(len(columns[0]), np.int64)
    for each in columns:
        codes = np.unique(each, return_inverse=True)[1].astype(np.int64)
        found = np.unique(found * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1].astype(np.int64)
    return found


def _best_of_each(event: Codes, cell: Codes, alike: Numbers, size: int) -> Numbers:
    """Return for each cell the sum, over known events, of the best likeness: an item done twice counts once."""
    key = event * size + cell
    order = np.argsort(key, kind="stable")
    first = np.flatnonzero(np.append(True, np.diff(key[order]) > 0)) if len(order) else order
    best = np.maximum.reduceat(alike[order], first) if len(order) else alike
    return np.asarray(np.bincount(cell[order][first], best, size), float)
