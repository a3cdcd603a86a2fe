"""Candidates: the published rows that fit what is known of each person.

Published rows with the same labels are one class, and people with the same known values one target.  Classes are
sorted, and the search extends each target column by column: from a prefix of labels to the next labels that cover its
value and occur after that prefix.  Where each value has one label, this is a merge of two sorted lists.  Where labels
overlap, a target follows several prefixes.  Targets are searched block by block, and a block with too many prefixes is
halved: this bounds memory for any published table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.attacks.cover import MISSING, Cover, cover_of, numbers, spans, text_array
from incrowd.attacks.knowledge import Knowledge, PublishedTable
from incrowd.errors import InvalidParameter

Codes = NDArray[np.int64]
_BLOCK, _MOST = 1 << 16, 1 << 24  # people at a time, and candidates of them in memory: 128 MB
NONE = -1
NEAR = 0.01
"""A masked number is right about a person if at most this share of all people have a number nearer to it."""
_SIDES: tuple[tuple[float, Literal["left", "right"]], ...] = ((-1.0, "right"), (1.0, "left"))


@dataclass(frozen=True, eq=False)
class CodedColumns:
    """A column as codes, and the distinct texts in order that the codes stand for."""

    codes: Codes
    texts: NDArray[np.str_]

    @classmethod
    def of(cls, array: pa.ChunkedArray | pa.Array) -> CodedColumns:
        """Encode a column."""
        codes, distinct_texts = ordered_codes(array)
        return cls(codes, np.asarray(distinct_texts.to_numpy(zero_copy_only=False), dtype=str))

    @property
    def array(self) -> pa.DictionaryArray:
        """The column as text, each distinct one stored once."""
        return pa.DictionaryArray.from_arrays(self.codes.astype(np.int32), pa.array(self.texts, pa.string()))


def ordered_codes(array: pa.ChunkedArray | pa.Array) -> tuple[Codes, pa.StringArray]:
    """Return a column as codes of its distinct texts, and these in order."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    words = pa.concat_arrays([text_array(array.dictionary), pa.array([MISSING])]).dictionary_encode()
    places = array.indices.fill_null(len(array.dictionary)).to_numpy(zero_copy_only=False)
    del array
    order = pc.array_sort_indices(words.dictionary)
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    codes, used = rank[words.indices.to_numpy()][places], np.zeros(len(order), bool)
    used[codes] = True
    return (np.cumsum(used) - 1)[codes], words.dictionary.take(order).filter(pa.array(used))


@dataclass(frozen=True, eq=False)
class ColumnMatch:
    """A column on both sides: people's values, published labels, and which labels cover which values.

    `near` are the numbers of all people in order, where a mask moved numbers or may have done so: then a number that
    is near a person's is right as well.
    """

    values: CodedColumns
    labels: CodedColumns
    cover: Cover
    near: NDArray[np.float64] | None = None

    def fits(self, labels: Codes) -> NDArray[np.bool_]:
        """Return for each person whether a label (one a person, −1 for none) is right about the person's value."""
        covered = self.cover.contains(self.values.codes, labels)
        if self.near is None:
            return covered
        return covered | self.fits_number(np.where(labels >= 0, numbers(self.labels.texts)[labels], np.nan))

    def fits_number(self, guesses: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return for each person whether at most 1 % of all people have a number nearer to the guess (NaN for none)."""
        if self.near is None:
            return np.zeros(len(guesses), bool)
        far = np.abs(numbers(self.values.texts)[self.values.codes] - guesses)
        room = far * (1.0 - 1e-12)
        first, last = (np.searchsorted(self.near, guesses + side * room, end) for side, end in _SIDES)
        return np.asarray(np.isfinite(far) & (last - first <= NEAR * len(self.near)), bool)


def match(published: PublishedTable, people: pa.Table, column: str, slack: float | None = None) -> ColumnMatch:
    """Return a published column together with the same column of people."""
    for table, source in ((published.table, "the published table"), (people, "the data")):
        if column not in table.column_names:
            raise InvalidParameter(
                f"{column!r} is not a column of {source}, so rows cannot be matched by it. Name columns of both."
            )
    values, labels = CodedColumns.of(people.column(column)), _labels(published, column)
    cover = cover_of(values.texts, labels.texts, published.lookups.get(column), slack)
    moved = published.masks is None or column in published.masks
    return ColumnMatch(values, labels, cover, _near(values, labels) if moved and slack is None else None)


def _labels(published: PublishedTable, column: str) -> CodedColumns:
    return published.once(("labels", column), lambda: CodedColumns.of(published.table.column(column)))


def _near(values: CodedColumns, labels: CodedColumns) -> NDArray[np.float64] | None:
    """Return the numbers of all people in order; None if most values or labels are not numbers."""
    true = numbers(values.texts)
    if np.isfinite(true).mean() <= 0.5 or np.isfinite(numbers(labels.texts)).mean() <= 0.5:
        return None
    return np.sort(true[values.codes][np.isfinite(true[values.codes])])


def together(people: pa.Table, control: pa.Table | None) -> pa.Table:
    """Return people in the data and then the control group, all as text; both need the same columns."""
    if control is None:
        return people
    missing = [name for name in people.column_names if name not in control.column_names]
    if missing:
        raise InvalidParameter(f"the control group has no column {missing[0]!r}: it needs the columns of the data.")
    tables = [
        pa.table({name: CodedColumns.of(table.column(name)).array for name in people.column_names})
        for table in (people, control)
    ]
    return pa.concat_tables(tables)


@dataclass(frozen=True, eq=False)
class CandidateSearch:
    """Which classes of published rows fit which people in some columns."""

    covers: tuple[Cover, ...]
    targets: Codes
    target_of: Codes
    classes: Codes
    class_of: Codes
    rows: Codes

    @classmethod
    def of(
        cls, published: PublishedTable, people: pa.Table, columns: Sequence[str], knowledge: Knowledge
    ) -> CandidateSearch:
        """Prepare to look for people by these columns."""
        if not columns:
            raise InvalidParameter("an attacker who knows nothing cannot search for anybody: name known columns.")
        matches = [match(published, people, name, knowledge.slack.get(name)) for name in columns]
        matches.sort(key=lambda column: len(column.cover.labels) / max(1, len(column.values.texts)))
        targets, target_of = distinct([column.values.codes for column in matches])
        classes, class_of = distinct([column.labels.codes for column in matches])
        rows = np.bincount(class_of, published.weights, len(classes)).astype(np.int64)
        return cls(tuple(column.cover for column in matches), targets, target_of, classes, class_of, rows)

    def blocks(self) -> Iterator[tuple[Codes, Codes]]:
        """Yield pairs of a target and a class that fits it, block by block; a target's pairs are all in one block."""
        levels = _levels(self.classes)
        waiting = [
            np.arange(start, min(start + _BLOCK, len(self.targets))) for start in range(0, len(self.targets), _BLOCK)
        ]
        while waiting:
            block = waiting.pop()
            pairs = self._walk(block, levels)
            if pairs is not None:
                yield pairs
            else:
                waiting += [block[: len(block) // 2], block[len(block) // 2 :]]

    def _walk(self, block: Codes, levels: list[tuple[Codes, int]]) -> tuple[Codes, Codes] | None:
        owner, prefix = block, np.zeros(len(block), np.int64)
        for column, (cover, (prefixes, width)) in enumerate(zip(self.covers, levels, strict=True)):
            value = self.targets[owner, column]
            low, high = cover.starts[value], cover.starts[value + 1]
            if (high - low).sum() > _MOST and len(block) > 1:
                return None
            keys = np.repeat(prefix, high - low) * width + cover.labels[spans(low, high)]
            place = np.minimum(np.searchsorted(prefixes, keys), max(len(prefixes) - 1, 0))
            present = prefixes[place] == keys if len(prefixes) else np.zeros(len(keys), bool)
            owner, prefix = np.repeat(owner, high - low)[present], place[present]
        return owner, prefix

    def totals(self) -> Codes:
        """Return for each person how many published rows fit."""
        totals = np.zeros(len(self.targets), np.int64)
        for owner, classes in self.blocks():
            np.add.at(totals, owner, self.rows[classes])
        return totals[self.target_of]

    def agreement(self, codes: Codes) -> Codes:
        """Return for each person the code that all rows that fit share, or −1 if none fits or they differ."""
        present = self.rows[self.class_of] > 0
        low, high = np.full(len(self.classes), np.iinfo(np.int64).max), np.full(len(self.classes), NONE)
        np.minimum.at(low, self.class_of[present], codes[present])
        np.maximum.at(high, self.class_of[present], codes[present])
        least, greatest = np.full(len(self.targets), np.iinfo(np.int64).max), np.full(len(self.targets), NONE)
        for owner, classes in self.blocks():
            np.minimum.at(least, owner, low[classes])
            np.maximum.at(greatest, owner, high[classes])
        return np.where(least == greatest, greatest, NONE)[self.target_of]

    def holdings(self, codes: Codes, weights: Codes) -> Iterator[tuple[Codes, Codes, Codes]]:
        """Yield, block by block, each target with each code among the rows that fit, and how many rows that is."""
        width = int(codes.max(initial=0)) + 1
        held, back = np.unique(self.class_of * width + codes, return_inverse=True)
        number = np.bincount(back, weights, len(held)).astype(np.int64)
        starts = np.searchsorted(held, np.arange(len(self.classes) + 1) * width)
        for owner, classes in self.blocks():
            low, high = starts[classes], starts[classes + 1]
            inner = spans(low, high)
            keys, place = np.unique(np.repeat(owner, high - low) * width + held[inner] % width, return_inverse=True)
            rows = np.bincount(place, number[inner], len(keys)).astype(np.int64)
            there = rows > 0
            yield keys[there] // width, keys[there] % width, rows[there]

    def commonest(self, codes: Codes, weights: Codes) -> Codes:
        """Return for each person the commonest code among the rows that fit, −1 if none does."""
        best = np.full(len(self.targets), NONE)
        for owner, held, rows in self.holdings(codes, weights):
            order = np.lexsort((-held, rows, owner))
            last = order[np.append(np.diff(owner[order]) > 0, True)] if len(order) else order
            best[owner[last]] = held[last]
        return best[self.target_of]


def distinct(columns: Sequence[Codes]) -> tuple[Codes, Codes]:
    """Return the distinct rows of some columns of codes, in order, and for each row which one it is.

    >>> rows, which = distinct([np.array([1, 0, 1]), np.array([2, 2, 2])])
    >>> rows.tolist(), which.tolist()
    ([[0, 2], [1, 2]], [1, 0, 1])
    """
    group = row_groups(columns)
    _, first = np.unique(group, return_index=True)
    return np.stack([codes[first] for codes in columns], axis=1), group


def row_groups(columns: Iterable[Codes]) -> Codes:
    """Return for each row of some columns of codes which of the distinct rows, in order, it is."""
    column = iter(columns)
    group = np.unique(next(column), return_inverse=True)[1]
    for codes in column:
        group = np.unique(group * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1]
    return group


def sampled(table: pa.Table, most: int, seed: int) -> pa.Table:
    """Return at most `most` rows, sampled by their values: the order of the rows has no effect."""
    if table.num_rows <= most:
        return table
    which = row_groups(ordered_codes(table.column(name))[0] for name in table.column_names)  # one column at a time
    rank = np.random.default_rng(seed).permutation(int(which.max()) + 1)
    return table.take(np.argsort(rank[which], kind="stable")[:most])


def codes_of(published: PublishedTable, columns: Sequence[str]) -> Codes:
    """Return one code for the tuple of some columns of each published row."""
    if not columns:
        return np.zeros(published.table.num_rows, np.int64)
    return published.once(
        ("codes", *columns), lambda: distinct([_labels(published, name).codes for name in columns])[1]
    )


def _levels(classes: Codes) -> list[tuple[Codes, int]]:
    """Return for each column the sorted continuations of the prefixes before it, and the width of a label's code."""
    prefix, levels = np.zeros(len(classes), np.int64), []
    for column in range(classes.shape[1]):
        width = int(classes[:, column].max(initial=0)) + 1
        continuations, prefix = np.unique(prefix * width + classes[:, column], return_inverse=True)
        levels.append((continuations, width))
    return levels
