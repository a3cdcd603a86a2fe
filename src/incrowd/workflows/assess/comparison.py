"""Comparison: a release and the rows it came from, column by column and tuple by tuple.

The original is counted once, over the released columns as declared.  Each released label stands for some values, so the
crowd of a released class is the original rows that could be in it, at any levels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from incrowd.core.cells import Cells
from incrowd.core.counts import Counts
from incrowd.core.keys import Layout, grouped
from incrowd.core.recoding import Classes, Recoding
from incrowd.core.schema import Column, Schema
from incrowd.core.table import Engine, Rows
from incrowd.engines.columns import require
from incrowd.errors import InvalidParameter
from incrowd.measures.coded import Coded
from incrowd.methods.shared.outcome import ReleasedTuples
from incrowd.workflows.assess.labels import LabelMap, label_map_of, positions_of
from incrowd.workflows.assess.released import ReadRelease

_WORK = 2**31  # rows times columns times people: bounds the time
_DRAWN = 100_000  # people who are drawn, evenly spaced
_SEED = 1  # fixed, so that two assessments agree
NOT_FROM_HERE = (
    "the release has rows that this data, recoded by this policy, does not have: it was made from other data or under "
    "another policy. Name the ones it was made from."
)


@dataclass(frozen=True, eq=False)
class ShownTable:
    """One table of a release: what its labels stand for, and how many rows have each tuple.

    `codes` has for each column the label of each tuple.  Labels of sets of items have no map.  A table that is only
    `listed` has tuples without counts.
    """

    names: tuple[str, ...]
    label_maps: tuple[LabelMap | None, ...]
    codes: NDArray[np.int32]
    rows: NDArray[np.int64]
    faithful: bool
    labels: tuple[tuple[str | None, ...], ...]
    listed: bool = False
    blanks: bool = False

    @property
    def read(self) -> tuple[int, ...]:
        """The columns whose labels were read."""
        return tuple(place for place, label_map in enumerate(self.label_maps) if label_map is not None)

    @property
    def total(self) -> int:
        """How many rows the table shows."""
        return int(self.rows.sum())

    def classes(self, columns: Sequence[int]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the different tuples over some columns, as labels column by column, and how many rows each has."""
        if not columns:
            return np.zeros((0, min(1, len(self.rows))), np.int32), np.array([self.total])[: min(1, len(self.rows))]
        layout = Layout(tuple(max(1, len(self.labels[place])) for place in columns))
        keys, rows = grouped(layout.pack([self.codes[place] for place in columns]), self.rows)
        present = rows > 0
        return np.stack(layout.unpack(keys[present])), rows[present]

    def values(self, original: Coded) -> Coded:
        """Return rows in which each label is spread evenly over the values it stands for."""
        total = self.total
        targets = np.arange(total) + 0.5 if total <= _DRAWN else (np.arange(_DRAWN) + 0.5) * (total / _DRAWN)
        places = np.searchsorted(np.cumsum(self.rows), targets, side="right") if total else np.zeros(0, np.intp)
        chance = np.random.default_rng(_SEED)
        columns = [self.label_maps[place] for place in self.read]
        sampled = [
            label_map.sampled(self.codes[place][places], chance.random(len(places)))
            for place, label_map in zip(self.read, columns, strict=True)
            if label_map is not None
        ]
        columns_read = original.only([original.place(self.names[place]) for place in self.read])
        codes = np.stack(sampled) if sampled else np.zeros((0, len(places)), np.int32)
        return Coded(columns_read.names, codes, np.ones(len(places)), columns_read.sizes, columns_read.positions)


@dataclass(frozen=True, eq=False)
class Original:
    """The rows that a release came from, counted over the released columns as they are declared.

    `pairs` also has the person ID column, where people are the unit of privacy; each has at most `most` released rows.
    """

    counts: Counts
    pairs: Counts | None = None
    most: int = 1

    @classmethod
    def of(cls, rows: Rows, schema: Schema, names: Sequence[str], engine: Engine) -> Original:
        """Count rows over some columns at their values; sets of items are compared as text."""
        require(rows.names, names)
        columns = [schema[name] for name in names]
        plain = [Column(column.name, column.role) if column.separator is not None else column for column in columns]
        person, recodings = schema.unit.column, tuple(Recoding(column, 0) for column in plain)
        if person is None or person in names or person not in rows.names:
            return cls(engine.count(rows, Cells(recodings)))
        pairs = engine.count(rows, Cells((*recodings, Recoding(Column(person), 0))))
        return cls(pairs.marginal(names), pairs, schema.unit.max_rows)

    def people(self, names: Sequence[str]) -> Counts:
        """Return how many people have each tuple of some columns; rows, where rows are the unit of privacy."""
        return self.counts.marginal(names) if self.pairs is None else people_in(self.pairs, names)

    def classes(self, name: str) -> Classes:
        """Return the values of a column."""
        return self.counts.classes[self.counts.names.index(name)]

    @cached_property
    def coded(self) -> Coded:
        """The same as codes."""
        classes = self.counts.classes
        codes = np.stack(self.counts.codes()) if classes else np.zeros((0, 0), np.int32)
        sizes = tuple(max(1, len(values)) for values in classes)
        return Coded(
            self.counts.names, codes, self.counts.counts.astype(float), sizes, tuple(map(positions_of, classes))
        )


def people_in(pairs: Counts, names: Sequence[str]) -> Counts:
    """Return how many people have each tuple of some columns, from counts whose last column is the person ID."""
    once = pairs.marginal([*names, pairs.names[-1]])
    return replace(once, counts=np.ones_like(once.counts)).marginal(names)


def shown_tables(released: ReadRelease, schema: Schema, original: Original) -> tuple[ShownTable, ...]:
    """Read every label of a release, or refuse what this policy does not have."""
    return tuple(_read(tuples, released, schema, original) for tuples in released.tables)


def shown_names(released: ReadRelease, schema: Schema) -> tuple[str, ...]:
    """Return the released columns of a policy, or refuse a release without any, and a model."""
    present = {name for table in released.tables for name in table.labels.column_names}
    names = tuple(column.name for column in schema.released if column.name in present)
    if not released.tables:
        raise InvalidParameter(
            "this release is a model, which has no rows to compare with the data. incrowd assess with its folder alone "
            "reports its accuracy."
        )
    if not names:
        raise InvalidParameter(
            f"the release and the policy have no column in common: the policy releases "
            f"{', '.join(column.name for column in schema.released)}. Name the policy it was released under."
        )
    return names


def _read(tuples: ReleasedTuples, released: ReadRelease, schema: Schema, original: Original) -> ShownTable:
    names = tuple(name for name in original.counts.names if name in tuples.labels.column_names)
    label_maps, codes, labels = [], [], []
    for name in names:
        coded = tuples.labels[name].combine_chunks().dictionary_encode(null_encoding="encode")
        spelled = tuple(coded.dictionary.to_pylist())
        items = schema[name].separator is not None
        blanks = tuples.blanks and name in schema.quasi
        levels = released.levels.get(name, ())
        label_maps.append(None if items else label_map_of(original.classes(name), spelled, levels, blanks=blanks))
        codes.append(coded.indices.to_numpy(zero_copy_only=False).astype(np.int32))
        labels.append(spelled)
    rows = np.zeros(tuples.labels.num_rows, np.int64) if tuples.rows is None else tuples.rows.astype(np.int64)
    changed = any(label_map is not None and label_map.changed for label_map in label_maps)
    table = np.stack(codes) if codes else np.zeros((0, len(rows)), np.int32)
    faithful = tuples.faithful and not changed
    return ShownTable(
        names, tuple(label_maps), table, rows, faithful, tuple(labels), tuples.rows is None, tuples.blanks
    )


@dataclass(frozen=True, eq=False)
class Crowds:
    """Classes of a released table over some columns: their labels, their rows, and their crowds in the original.

    `counted` are the classes whose crowd was counted: all of them, unless there are too many.  `owners` is the least
    number of people who can have the rows of each class; equal to the rows, where rows are the unit of privacy.
    """

    labels: NDArray[np.int32]
    rows: NDArray[np.int64]
    counted: NDArray[np.intp]
    people: NDArray[np.int64]
    owners: NDArray[np.int64]

    @property
    def whole(self) -> bool:
        """Whether every crowd was counted."""
        return len(self.counted) == len(self.rows)


def crowds(table: ShownTable, columns: Sequence[int], original: Original) -> Crowds:
    """Count the original rows that could be in each released class; a class with more rows than that is refused.

    Where labels of a column cannot be read, the rows of the class itself are its crowd: the true crowd is not smaller.
    """
    labels, rows = table.classes(columns)
    label_maps = [table.label_maps[column] for column in columns]
    maps = [label_map for label_map in label_maps if label_map is not None]
    owners = -(-rows // original.most)
    if not len(rows) or not columns:
        everybody = np.full(len(rows), original.counts.total, np.int64)
        return Crowds(labels, rows, np.arange(len(rows)), everybody, owners)
    if not maps:
        return Crowds(labels, rows, np.arange(len(rows)), owners, owners)
    names = [
        table.names[column] for column, label_map in zip(columns, label_maps, strict=True) if label_map is not None
    ]
    classes = labels[[place for place, label_map in enumerate(label_maps) if label_map is not None]]
    counted, people = _people(classes, maps, original.counts.marginal(names))
    if (people < rows[counted]).any():
        raise InvalidParameter(NOT_FROM_HERE)
    if original.pairs is not None:
        pairs = original.pairs.marginal([*names, original.pairs.names[-1]])
        people, owners[counted] = _owners(classes[:, counted], maps, pairs, (rows[counted], original.most))
    return Crowds(labels, rows, counted, people if len(maps) == len(label_maps) else owners[counted], owners)


def _owners(
    classes: NDArray[np.int32], label_maps: Sequence[LabelMap], pairs: Counts, rows: tuple[NDArray[np.int64], int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how many people could be in each class, and the least number of them who can have its released rows.

    `rows` are the released rows of each class, and how many of them one person can have.
    """
    *codes, person = pairs.codes()
    released, most = rows
    people, owners = np.zeros_like(released), np.zeros_like(released)
    for place, inside in _members(classes, label_maps, codes):
        held = np.bincount(np.unique(person[inside], return_inverse=True)[1], pairs.counts[inside])
        held = np.cumsum(np.sort(np.minimum(held, most))[::-1])
        people[place] = len(held)
        owners[place] = min(len(held), int(np.searchsorted(held, released[place])) + 1)
    return people, owners


def _members(
    classes: NDArray[np.int32], label_maps: Sequence[LabelMap], codes: Sequence[NDArray[np.int32]]
) -> Iterator[tuple[int, NDArray[np.intp]]]:
    """Yield each class with the places of the original tuples that could be in it."""
    if not all(label_map.apart for label_map in label_maps):
        for place, labels in enumerate(classes.T):
            columns = zip(label_maps, labels, codes, strict=True)
            inside = [label_map.holds(int(label))[column] for label_map, label, column in columns]
            yield place, np.flatnonzero(np.logical_and.reduce(inside))
        return
    labels_of = [label_map.owner()[column] for label_map, column in zip(label_maps, codes, strict=True)]
    layout = Layout(tuple(max(1, len(label_map.lengths)) + 1 for label_map in label_maps))
    keys = layout.pack([(label + 1).astype(np.int32) for label in labels_of])
    order = np.argsort(keys, kind="stable")
    wanted_keys = layout.pack([(label + 1).astype(np.int32) for label in classes])
    starts, ends = (np.searchsorted(keys[order], wanted_keys, side) for side in ("left", "right"))
    for place, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        yield place, order[start:end]


def held(table: ShownTable, original: Original) -> tuple[int, int]:
    """Return how many original rows have a listed tuple, and how many have one of as many most common tuples."""
    label_maps = [label_map for label_map in table.label_maps if label_map is not None]
    data = original.counts.marginal([table.names[place] for place in table.read])
    _, people = _people(table.codes[list(table.read)], label_maps, data)
    above = data.rollup({name: level for name, level in _levels(table).items() if level})
    return int(people.sum()), int(np.sort(above.counts)[::-1][: len(table.rows)].sum())


def _levels(table: ShownTable) -> dict[str, int]:
    label_maps = [(table.names[place], table.label_maps[place]) for place in table.read]
    return {
        name: label_map.level
        for name, label_map in label_maps
        if label_map is not None and isinstance(label_map.level, int)
    }


def _people(
    classes: NDArray[np.int32], label_maps: Sequence[LabelMap], data: Counts
) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Return which classes were counted, all unless there are too many, and the original rows of each."""
    if all(label_map.apart for label_map in label_maps):
        return np.arange(classes.shape[1]), _people_by_key(classes, label_maps, data)
    most = max(1, _WORK // max(1, len(data) * len(label_maps)))
    counted = np.unique(np.linspace(0, classes.shape[1] - 1, min(classes.shape[1], most)).astype(np.intp))
    return counted, _people_by_class(classes[:, counted], label_maps, data)


def _people_by_key(classes: NDArray[np.int32], label_maps: Sequence[LabelMap], data: Counts) -> NDArray[np.int64]:
    """Count where every value has at most one label: each original tuple has one class."""
    owners = [label_map.owner()[codes] for label_map, codes in zip(label_maps, data.codes(), strict=True)]
    inside = np.logical_and.reduce([owner >= 0 for owner in owners])
    layout = Layout(tuple(max(1, len(label_map.lengths)) for label_map in label_maps))
    keys, people = grouped(layout.pack([owner[inside].astype(np.int32) for owner in owners]), data.counts[inside])
    wanted_keys = layout.pack([codes.astype(np.int32) for codes in classes])
    places = np.minimum(np.searchsorted(keys, wanted_keys), max(0, len(keys) - 1))
    if not len(keys):
        return np.zeros(len(wanted_keys), np.int64)
    return np.where(keys[places] == wanted_keys, people[places], 0).astype(np.int64)


def _people_by_class(classes: NDArray[np.int32], label_maps: Sequence[LabelMap], data: Counts) -> NDArray[np.int64]:
    """Count where labels overlap: class by class, the original tuples that all its labels cover."""
    codes, weights = data.codes(), data.counts.astype(np.float64)
    inside = [
        {int(label): np.packbits(label_map.holds(int(label))[column]) for label in np.unique(labels)}
        for label_map, column, labels in zip(label_maps, codes, classes, strict=True)
    ]
    people = np.empty(classes.shape[1], np.int64)
    for number, labels in enumerate(classes.T):
        both = np.bitwise_and.reduce([bits[int(label)] for bits, label in zip(inside, labels, strict=True)])
        people[number] = int(np.rint(weights @ np.unpackbits(both, count=len(weights))))
    return people
