"""Attacks on histories: several rows a person, of which the attacker knows a few."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.attacks.candidates import NONE, CodedColumns, Codes, ColumnMatch, match, together
from incrowd.attacks.cover import numbers, spans, texts
from incrowd.attacks.finding import Finding, Rate, Risk
from incrowd.attacks.knowledge import Knowledge, PublishedTable
from incrowd.core.displacement import DistanceKind
from incrowd.errors import InvalidParameter

_CELLS, _PAIRS = 1 << 22, 1 << 22  # in memory at a time: 32 MB each
Numbers = NDArray[np.float64]
ECCENTRICITY = 1.5
"""The threshold of Narayanan & Shmatikov 2008."""
_OUTSIDE = "\N{SYMBOL FOR UNIT SEPARATOR}outside"
_OWNER = "owner"
_SIDES: tuple[Literal["left"], Literal["right"]] = ("left", "right")


@dataclass(frozen=True, eq=False)
class HistoryPart:
    """How much, or when: a column of people's events and of published ones as numbers, and what counts as near.

    The scale is the slack of what is known, or how far a mask moved numbers; else one and a half steps between the
    published numbers, or 1.5 % of their range if that is more (1.5 stars and 30 days in the source).
    """

    name: str
    people: Numbers
    published: Numbers
    scale: float

    @classmethod
    def of(cls, name: str, people: pa.Table, published: PublishedTable, slack: float | None) -> HistoryPart:
        """Read a column on both sides."""
        ours, theirs = (CodedColumns.of(table.column(name)) for table in (people, published.table))
        values = numbers(theirs.texts)
        moved = (published.masks or {}).get(name)
        scale = max(slack or 0.0, _usual_scale(values) if slack is None else 0.0) or 1.0
        if moved is not None and moved.measured in (DistanceKind.NUMBER, DistanceKind.DEVIATION):
            unit = float(np.nanstd(values[theirs.codes])) if moved.measured is DistanceKind.DEVIATION else 1.0
            scale = max(scale, moved.size * unit)
        return cls(name, numbers(ours.texts)[ours.codes], values[theirs.codes], scale)


def _usual_scale(values: Numbers) -> float:
    """Return how far apart numbers are that count as near, if nothing is known about it.

    >>> _usual_scale(np.array([1.0, 2, 3, 4, 5])), _usual_scale(np.arange(2001.0))
    (1.5, 30.0)
    """
    steps = np.unique(values[np.isfinite(values)])
    return max(1.5 * float(np.median(np.diff(steps))), 0.015 * float(np.ptp(steps))) if len(steps) > 1 else 1.0


@dataclass(frozen=True, eq=False)
class Histories:
    """Published histories and those of people: the owner of each event, its item, and how much or when.

    People in the data come first, then the control group.  `item` has the items of people's events as values and those
    of published events as labels.
    """

    item: ColumnMatch
    published: Codes
    people: Codes
    inside: int
    parts: tuple[HistoryPart, ...]
    knowledge: Knowledge
    table: pa.Table

    @classmethod
    def of(cls, published: PublishedTable, knowledge: Knowledge, control: pa.Table | None) -> Histories:
        """Read events on both sides."""
        if knowledge.item is None:
            raise InvalidParameter(
                "this attack needs items, such as films, goods or words: name their column with --item."
            )
        events = _long(published.table, knowledge)
        if not events.num_rows or not knowledge.people.num_rows:
            raise InvalidParameter("nobody can be attacked: the data and the published table both need rows.")
        everyone = people = _long(knowledge.people, knowledge)
        if control is not None:
            everyone = together(people, _long(control, knowledge, _OUTSIDE))
        owner = CodedColumns.of(everyone.column(_OWNER))
        inside = np.unique(owner.codes[: people.num_rows])
        rank = np.argsort(np.argsort(~np.isin(np.arange(len(owner.texts)), inside), kind="stable"), kind="stable")
        long = replace(published, table=events)
        item = match(PublishedTable(events, published.lookups), everyone, knowledge.item)
        parts = tuple(
            HistoryPart.of(name, everyone, long, knowledge.slack.get(name))
            for name in knowledge.known_columns
            if name not in (knowledge.item, knowledge.person) and name in events.column_names
        )
        owners = CodedColumns.of(events.column(_OWNER)).codes
        return cls(item, owners, rank[owner.codes], len(inside), parts, knowledge, everyone)

    @property
    def targets(self) -> int:
        """How many people are attacked, including the control group."""
        return int(self.people.max()) + 1

    @property
    def number(self) -> int:
        """How many histories were published."""
        return int(self.published.max()) + 1

    def glimpses(self) -> Codes:
        """Return the events that the attacker knows: a random few of each person."""
        events = np.lexsort([*(part.people for part in self.parts), self.item.values.codes, self.people])
        mixed = events[self.knowledge.chance.permutation(len(events))]
        mixed = mixed[np.argsort(self.people[mixed], kind="stable")]
        owner = self.people[mixed]
        place = np.arange(len(mixed)) - np.searchsorted(owner, owner)
        return mixed[place < self.knowledge.few]

    def attacked(self) -> Codes:
        """Return who is attacked: at most `trials` people in the data, and at most as many of the control group."""
        most, chance = self.knowledge.trials, self.knowledge.chance
        ours, theirs = np.arange(self.inside), np.arange(self.inside, self.targets)
        return np.concatenate([np.sort(chance.permutation(group)[:most]) for group in (ours, theirs)])

    def scores(self, glimpses: Codes, about: Sequence[Numbers], weights: Numbers) -> Iterator[tuple[Codes, Numbers]]:
        """Yield blocks of people, each with the score of every published history."""
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
                alike = weights[self.item.labels.codes[published]] * self._nearness(about, event, published)
                cell = np.searchsorted(block, owner[event]) * self.number + self.published[published]
                if self.repeats:
                    total += _best_of_each(event, cell, alike, len(total))
                else:
                    total += np.bincount(cell, alike, len(total))
            yield block, total.reshape(len(block), self.number)

    def _nearness(self, about: Sequence[Numbers], event: Codes, published: Codes) -> Numbers | float:
        """Return how alike two events of one item are: 1 for the item and up to 1 for each part, on average."""
        near = [
            np.nan_to_num(np.exp(-np.abs(ours[event] - part.published[published]) / part.scale))
            for ours, part in zip(about, self.parts, strict=True)
        ]
        return (1.0 + np.sum(near, axis=0)) / (1.0 + len(near)) if near else 1.0

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
        """Return for each person whether a claimed history (−1 for none) holds at least half of the person's events.

        An event is held if the history has its item, with one of its numbers within twice the scale: publishers shift
        days and change numbers, and the history is the person's all the same.
        """
        label, claim = _labels(self.item), claims[self.people]
        own = np.flatnonzero((claim >= 0) & (label >= 0))
        keys = self.published * len(self.item.labels.texts) + self.item.labels.codes
        order = np.argsort(keys, kind="stable")
        sought = claim[own] * len(self.item.labels.texts) + label[own]
        low, high = (np.searchsorted(keys[order], sought, side) for side in _SIDES)
        event, published = np.repeat(own, high - low), order[spans(low, high)]
        near = np.ones(len(event), bool)
        if self.parts:
            near = np.logical_or.reduce(
                [np.abs(part.people[event] - part.published[published]) <= 2.0 * part.scale for part in self.parts]
            )
        held = np.zeros(len(self.people), bool)
        held[event[near]] = True
        number = np.bincount(self.people, minlength=self.targets)
        half = 2 * np.bincount(self.people, held, self.targets) >= np.maximum(number, 1)
        return np.asarray(half & (claims >= 0), bool)

    def finding(self, attack: str, knows: str, claims: Codes, story: tuple[str, ...]) -> Finding:
        """Return the finding; the baseline takes the longest history as everybody's."""
        attacked = self.attacked()
        ours, theirs = attacked[attacked < self.inside], attacked[attacked >= self.inside]
        hits = self.right(claims)
        longest = int(np.bincount(self.published).argmax())
        baseline_hits = self.right(np.full(self.targets, longest))
        control = Rate(int(hits[theirs].sum()), len(theirs)) if len(theirs) else None
        success, baseline = (Rate(int(right[ours].sum()), len(ours)) for right in (hits, baseline_hits))
        return Finding(attack, Risk.LINKABILITY, knows, success, baseline, control, story)

    def story(self, glimpses: Codes, claims: Codes, step: Callable[[int], str], noun: str) -> tuple[str, ...]:
        """Return how the first victim is attacked; empty if there is none."""
        hits = np.flatnonzero(self.right(claims)[: self.inside])
        if not len(hits):
            return ()
        person = int(hits[0])
        events = glimpses[self.people[glimpses] == person]
        whole = int((self.people == person).sum())
        return (
            f"The attacker knows of a person: {self.words(events)}.",
            step(person),
            f"It is the person's: the attacker, who knew {len(events)} {noun}, now reads all {whole}.",
        )

    def words(self, events: Codes) -> str:
        """Return some events as text."""
        columns = [
            name for name in (self.knowledge.item, *self.knowledge.known_columns) if name in self.table.column_names
        ]
        rows = self.table.select(list(dict.fromkeys(columns))).take(np.sort(events)).to_pylist()
        return "; ".join(" ".join(str(value) for value in row.values()) for row in rows)


def _long(table: pa.Table, knowledge: Knowledge, mark: str = "") -> pa.Table:
    """Return one row an event, with its owner; without a person ID column every row is a history of its own."""
    if knowledge.item not in table.column_names:
        raise InvalidParameter(
            f"{knowledge.item!r} must be a column of the published table and of the data: name another with --item."
        )
    named = knowledge.person in table.column_names if knowledge.person else False
    owners = texts(table.column(knowledge.person)) if named else np.arange(table.num_rows).astype(str)
    table = table.append_column(_OWNER, pa.array([f"{mark}{owner}" for owner in owners.tolist()]))
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


def _best_of_each(event: Codes, cell: Codes, alike: Numbers, size: int) -> Numbers:
    """Return for each cell the sum, over known events, of the best likeness: an item done twice counts once."""
    key = event * size + cell
    order = np.argsort(key, kind="stable")
    first = np.flatnonzero(np.append(True, np.diff(key[order]) > 0)) if len(order) else order
    best = np.maximum.reduceat(alike[order], first) if len(order) else alike
    return np.asarray(np.bincount(cell[order][first], best, size), float)


def similarity(published: PublishedTable, knowledge: Knowledge, control: pa.Table | None = None) -> Finding:
    """Score every published history against a person's few known events, and take the best if it stands out.

    Knows: a few events of a person, their numbers and days only approximately (within the slack).  An item that few
    people have weighs more, and days or ratings that were shifted or changed weigh less the farther they are, so that
    wrong ones do not matter.  Success: the best history scores more than 1.5 standard deviations above the second, and
    holds at least half of all the person's events, by item and one number that is near.  Baseline: the longest history.

    Meaningless with histories of one or two events: an attacker who knows them has nothing left to learn.

    Source: Narayanan & Shmatikov 2008.
    """
    histories = Histories.of(published, knowledge, control)
    glimpses = histories.glimpses()
    chance = np.random.default_rng(knowledge.seed + 1)
    slack = [knowledge.slack.get(part.name, 0.0) for part in histories.parts]
    about = [
        part.people[glimpses] + np.round(chance.uniform(-1.0, 1.0, len(glimpses)) * off)
        for part, off in zip(histories.parts, slack, strict=True)
    ]
    claims, margin = np.full(histories.targets, NONE), np.zeros(histories.targets)
    for block, scores in histories.scores(glimpses, about, rarity(histories.support())):
        margin[block] = eccentricity(scores)
        claims[block] = np.where(margin[block] > ECCENTRICITY, scores.argmax(axis=1), NONE)
    knows = f"{knowledge.few} events of a person" + "".join(
        f", {part.name} within {off:g}" for part, off in zip(histories.parts, slack, strict=True)
    )
    story = histories.story(
        glimpses,
        claims,
        lambda person: f"One history scores {margin[person]:.1f} standard deviations above the second.",
        "events",
    )
    return histories.finding("similarity", knows, claims, story)


def rarity(support: Codes) -> Numbers:
    """Return the weight of an item from the number of histories that have it: 1 over its logarithm, from two on.

    >>> rarity(np.array([100, 1])).round(4).tolist()
    [0.2171, 1.4427]
    """
    return np.asarray(1.0 / np.log(np.maximum(support, 2)), float)


def eccentricity(scores: Numbers) -> Numbers:
    """Return how far the best of each row of scores stands above the second, in standard deviations of all.

    >>> eccentricity(np.array([[3.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]])).round(3).tolist()
    [2.309, 0.0]
    """
    if scores.shape[1] < 2:
        return np.zeros(len(scores))
    best = np.partition(scores, -2, axis=1)[:, -2:]
    deviation = scores.std(axis=1)
    return np.asarray(np.where(deviation > 0, (best[:, 1] - best[:, 0]) / np.where(deviation > 0, deviation, 1.0), 0.0))


def baskets(published: PublishedTable, knowledge: Knowledge, control: pa.Table | None = None) -> Finding:
    """Look for the one published history that has all of a few known items.

    Knows: a few items of a person: goods bought, words searched for, places visited.  Generalized items
    count as well.  Success: exactly one published history has all of them, and at least half of the person's events.
    Baseline: the longest history.

    Meaningless if most people have no more items than are known: then the attacker learns nothing.

    Source: Barbaro & Zeller 2006 (a searcher of AOL found by her words); Terrovitis, Mamoulis & Kalnis 2008.
    """
    histories = replace(Histories.of(published, knowledge, control), parts=())
    glimpses = histories.glimpses()
    required = np.bincount(histories.people[glimpses], minlength=histories.targets)
    one = np.ones(len(histories.item.labels.texts))
    claims, fitting = np.full(histories.targets, NONE), np.zeros(histories.targets, np.int64)
    for block, scores in histories.scores(glimpses, (), one):
        full = scores >= required[block][:, None] - 0.5
        fitting[block] = full.sum(axis=1)
        claims[block] = np.where(fitting[block] == 1, full.argmax(axis=1), NONE)
    step = f"Of {histories.number} published histories exactly one has all of these."
    story = histories.story(glimpses, claims, lambda _: step, "items")
    return histories.finding("baskets", f"{knowledge.few} items of a person", claims, story)
