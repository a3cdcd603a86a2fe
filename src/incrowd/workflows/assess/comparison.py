"""Comparison: a release and the rows it came from, column by column and tuple by tuple.

The original is counted once, over the released columns as they are declared.  Each released label says for which values
it stands; so the crowd of a released class is the original rows that could be in it, at whatever levels it is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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
from incrowd.methods.outcomes.outcome import ReleasedTuples
from incrowd.workflows.assess.labels import LabelMap, label_book, positions_of
from incrowd.workflows.assess.released import ReadRelease

_WORK = 2**31
_DRAWN = 100_000
_SEED = 1
NOT_FROM_HERE = (
    "the release holds rows that this data, recoded by this policy, does not: it was made from other data or under "
    "another policy. Name the ones it was made from."
)


@dataclass(frozen=True, eq=False)
class ShownTable:
    """One table of a release beside the original: what its labels stand for, and how many rows show each tuple.

    `codes` has for each column the label of each tuple.  Labels of sets of items are not read: they have no book.  A
    table that is only `listed` shows tuples and not how many rows they have.
    """

    names: tuple[str, ...]
    books: tuple[LabelMap | None, ...]
    codes: NDArray[np.int32]
    rows: NDArray[np.int64]
    faithful: bool
    labels: tuple[tuple[str | None, ...], ...]
    listed: bool = False
    blanks: bool = False

    @property
    def read(self) -> tuple[int, ...]:
        """The columns whose labels were read."""
        return tuple(place for place, book in enumerate(self.books) if book is not None)

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
        shown = rows > 0
        return np.stack(layout.unpack(keys[shown])), rows[shown]

    def values(self, original: Coded) -> Coded:
        """Return rows as a reader takes them who spreads each label evenly over what it stands for."""
        total = self.total
        asked = np.arange(total) + 0.5 if total <= _DRAWN else (np.arange(_DRAWN) + 0.5) * (total / _DRAWN)
        places = np.searchsorted(np.cumsum(self.rows), asked, side="right") if total else np.zeros(0, np.intp)
        chance = np.random.default_rng(_SEED)
        columns = [self.books[place] for place in self.read]
        drawn = [
            book.drawn(self.codes[place][places], chance.random(len(places)))
            for place, book in zip(self.read, columns, strict=True)
            if book is not None
        ]
        kept = original.only([original.place(self.names[place]) for place in self.read])
        codes = np.stack(drawn) if drawn else np.zeros((0, len(places)), np.int32)
        return Coded(kept.names, codes, np.ones(len(places)), kept.sizes, kept.positions)


@dataclass(frozen=True, eq=False)
class Original:
    """The rows that a release came from, counted over the released columns as they are declared."""

    counts: Counts

    @classmethod
    def of(cls, rows: Rows, schema: Schema, names: Sequence[str], engine: Engine) -> Original:
        """Count rows over some columns at their values; sets of items are taken as they are written."""
        require(rows.names, names)
        columns = [schema[name] for name in names]
        plain = [Column(each.name, each.role) if each.separator is not None else each for each in columns]
        return cls(engine.count(rows, Cells(tuple(Recoding(column, 0) for column in plain))))

    def classes(self, name: str) -> Classes:
        """Return the values of a column."""
        return self.counts.classes[self.counts.names.index(name)]

    @cached_property
    def coded(self) -> Coded:
        """The same as codes."""
        classes = self.counts.classes
        codes = np.stack(self.counts.codes()) if classes else np.zeros((0, 0), np.int32)
        sizes = tuple(max(1, len(each)) for each in classes)
        return Coded(
            self.counts.names, codes, self.counts.counts.astype(float), sizes, tuple(map(positions_of, classes))
        )


def shown_tables(released: ReadRelease, schema: Schema, original: Original) -> tuple[ShownTable, ...]:
    """Read every label of a release, or refuse what this policy does not have."""
    return tuple(_read(shown, released, schema, original) for shown in released.tables)


def shown_names(released: ReadRelease, schema: Schema) -> tuple[str, ...]:
    """Return the columns that a release shows of a policy's, or refuse a release without any, and a model."""
    shown = {name for table in released.tables for name in table.labels.column_names}
    names = tuple(column.name for column in schema.released if column.name in shown)
    if not released.tables:
        raise InvalidParameter(
            "this release is a model, which shows no rows to be held against those of the data. incrowd assess with "
            "its folder alone says how right it is about them."
        )
    if not names:
        raise InvalidParameter(
            f"the release and the policy have no column in common: the policy releases "
            f"{', '.join(column.name for column in schema.released)}. Name the policy it was released under."
        )
    return names


def _read(shown: ReleasedTuples, released: ReadRelease, schema: Schema, original: Original) -> ShownTable:
    names = tuple(name for name in original.counts.names if name in shown.labels.column_names)
    books, codes, labels = [], [], []
    for name in names:
        coded = shown.labels[name].combine_chunks().dictionary_encode(null_encoding="encode")
        spelled = tuple(coded.dictionary.to_pylist())
        items = schema[name].separator is not None
        blanks = shown.blanks and name in schema.quasi
        told = released.levels.get(name, ())
        books.append(None if items else label_book(original.classes(name), spelled, told, blanks=blanks))
        codes.append(coded.indices.to_numpy(zero_copy_only=False).astype(np.int32))
        labels.append(spelled)
    rows = np.zeros(shown.labels.num_rows, np.int64) if shown.rows is None else shown.rows.astype(np.int64)
    changed = any(book is not None and book.changed for book in books)
    table = np.stack(codes) if codes else np.zeros((0, len(rows)), np.int32)
    faithful = shown.faithful and not changed
    return ShownTable(names, tuple(books), table, rows, faithful, tuple(labels), shown.rows is None, shown.blanks)


@dataclass(frozen=True, eq=False)
class Crowds:
    """Classes of a released table over some columns: their labels, their rows, and the original rows they could be.

    `asked` are the classes whose crowd was counted: all of them, unless there are too many.
    """

    labels: NDArray[np.int32]
    rows: NDArray[np.int64]
    asked: NDArray[np.intp]
    people: NDArray[np.int64]

    @property
    def whole(self) -> bool:
        """Whether every crowd was counted."""
        return len(self.asked) == len(self.rows)


def crowds(table: ShownTable, columns: Sequence[int], original: Original) -> Crowds:
    """Count the original rows that could stand in each released class; a class that has more itself is refused.

    Where labels of a column cannot be read, the rows of the class itself are its crowd: the true one is not smaller.
    """
    labels, rows = table.classes(columns)
    books = [table.books[column] for column in columns]
    known = [book for book in books if book is not None]
    if not len(rows) or not columns:
        return Crowds(labels, rows, np.arange(len(rows)), np.full(len(rows), original.counts.total, np.int64))
    if not known:
        return Crowds(labels, rows, np.arange(len(rows)), rows)
    names = [table.names[column] for column, book in zip(columns, books, strict=True) if book is not None]
    wanted = labels[[place for place, book in enumerate(books) if book is not None]]
    asked, people = _people(wanted, known, original.counts.marginal(names))
    if (people < rows[asked]).any():
        raise InvalidParameter(NOT_FROM_HERE)
    return Crowds(labels, rows, asked, people if len(known) == len(books) else rows[asked])


def held(table: ShownTable, original: Original) -> tuple[int, int]:
    """Return how many original rows lie in the tuples that a table lists, and in as many of the most common ones."""
    books = [book for book in table.books if book is not None]
    there = original.counts.marginal([table.names[place] for place in table.read])
    _, people = _people(table.codes[list(table.read)], books, there)
    above = there.rollup({name: level for name, level in _levels(table).items() if level})
    return int(people.sum()), int(np.sort(above.counts)[::-1][: len(table.rows)].sum())


def _levels(table: ShownTable) -> dict[str, int]:
    books = [(table.names[place], table.books[place]) for place in table.read]
    return {name: book.level for name, book in books if book is not None and isinstance(book.level, int)}


def _people(
    wanted: NDArray[np.int32], books: Sequence[LabelMap], there: Counts
) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Return which classes were asked for, all unless there are too many, and the original rows of each."""
    if all(book.apart for book in books):
        return np.arange(wanted.shape[1]), _looked_up(wanted, books, there)
    most = max(1, _WORK // max(1, len(there) * len(books)))
    asked = np.unique(np.linspace(0, wanted.shape[1] - 1, min(wanted.shape[1], most)).astype(np.intp))
    return asked, _gone_through(wanted[:, asked], books, there)


def _looked_up(wanted: NDArray[np.int32], books: Sequence[LabelMap], there: Counts) -> NDArray[np.int64]:
    """Count where every value lies under one label at most: each original tuple has one class."""
    owners = [book.owner()[codes] for book, codes in zip(books, there.codes(), strict=True)]
    inside = np.logical_and.reduce([owner >= 0 for owner in owners])
    layout = Layout(tuple(max(1, len(book.lengths)) for book in books))
    keys, people = grouped(layout.pack([owner[inside].astype(np.int32) for owner in owners]), there.counts[inside])
    asked = layout.pack([codes.astype(np.int32) for codes in wanted])
    places = np.minimum(np.searchsorted(keys, asked), max(0, len(keys) - 1))
    if not len(keys):
        return np.zeros(len(asked), np.int64)
    return np.where(keys[places] == asked, people[places], 0).astype(np.int64)


def _gone_through(wanted: NDArray[np.int32], books: Sequence[LabelMap], there: Counts) -> NDArray[np.int64]:
    """Count where labels overlap: class by class, the original tuples that every one of its labels holds."""
    codes, weights = there.codes(), there.counts.astype(np.float64)
    inside = [
        {int(label): np.packbits(book.holds(int(label))[column]) for label in np.unique(labels)}
        for book, column, labels in zip(books, codes, wanted, strict=True)
    ]
    people = np.empty(wanted.shape[1], np.int64)
    for number, labels in enumerate(wanted.T):
        both = np.bitwise_and.reduce([held[int(label)] for held, label in zip(inside, labels, strict=True)])
        people[number] = int(np.rint(weights @ np.unpackbits(both, count=len(weights))))
    return people
