"""Rows of linked tables: read as codes, cut to the contribution bounds of each level, and joined to their parents.

A row takes part by rules on its own person's rows and coins alone, level by level from the people down: one row of
each person; then at most `max_rows` rows of each person in a table below, among those whose parent takes part.  So
what a person adds to any count is bounded by the policy, and adding or removing a person changes no other's rows.

Source: Theorem Z of the mathematics of series and linked tables (docs/decisions/0039).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.core.cells import Cells
from incrowd.core.coins import Coins
from incrowd.core.linked import ChildTable, LinkedTables
from incrowd.core.recoding import Classes
from incrowd.core.schema import Column
from incrowd.core.table import Table
from incrowd.core.unit import ExtraRowsRule
from incrowd.engines.local.encoding import Encoder
from incrowd.engines.people import ids_of, names_of
from incrowd.methods.synthesis.marginals.model import Codes

_COINS = 2**62  # two rows of a person tie with probability 2^-62; then the first one stays
_NOBODY = -1

Places = NDArray[np.int64]
"""For each row the place of another: of its parent, its person, or the row before; -1 for none."""


@dataclass
class KeyTexts:
    """Key columns as text, in the one way in which each value is written; learned batch by batch."""

    keys: tuple[Column, ...]
    texts: dict[str, list[pa.Array]] = field(default_factory=dict)

    def add(self, batch: pa.RecordBatch) -> None:
        """Learn from some rows."""
        for key in self.keys:
            names = names_of(batch.column(key.name), key).dictionary_decode()
            self.texts.setdefault(key.name, []).append(names.cast(pa.large_string()))

    def merge(self, other: KeyTexts) -> None:
        """Learn what another summary learned from other rows."""
        for name, texts in other.texts.items():
            self.texts.setdefault(name, []).extend(texts)

    def ids(self, key: str) -> pa.Array:
        """Return a key column as text; null where there is none."""
        return pa.concat_arrays([pa.array([], pa.large_string()), *self.texts.get(key, [])])


@dataclass(kw_only=True)
class CodedRows(KeyTexts):
    """The codes of released columns, -1 where a row is suppressed, beside the keys.

    `fine` are finer pieces of some columns, which are read beside.
    """

    cells: Cells
    order: Column | None = None
    fine: Cells | None = None
    codes: list[NDArray[np.int32]] = field(default_factory=list)

    def add(self, batch: pa.RecordBatch) -> None:
        super().add(batch)
        codes = [*Encoder(self.cells).codes_of_all(batch)]
        if self.fine is not None:
            codes += Encoder(self.fine).codes_of_all(batch)
        self.codes.append(np.array(codes, np.int32).reshape(len(codes), len(batch)))
        if self.order is not None:
            values = ids_of(batch.column(self.order.name), self.order)
            self.texts.setdefault("", []).append(values)

    def merge(self, other: KeyTexts) -> None:
        super().merge(other)
        if isinstance(other, CodedRows):
            self.codes += other.codes

    @property
    def names(self) -> tuple[str, ...]:
        """The released columns."""
        return tuple(recoding.column.name for recoding in self.cells.recodings)

    @property
    def matrix(self) -> NDArray[np.int32]:
        """The codes, a line each column."""
        return self._lines[: len(self.names)]

    @property
    def pieces(self) -> NDArray[np.int32]:
        """The codes of finer pieces, a line each column that has them."""
        return self._lines[len(self.names) :]

    @property
    def _lines(self) -> NDArray[np.int32]:
        number = len(self.names) + (0 if self.fine is None else len(self.fine.recodings))
        return np.concatenate([np.zeros((number, 0), np.int32), *self.codes], axis=1)

    def ranks(self) -> NDArray[np.int64] | None:
        """Return for each row its rank by the declared order, equal for equal values, the missing ones last."""
        if self.order is None:
            return None
        values = self.texts.get("", [])
        if not values:
            return np.zeros(0, np.int64)
        ranks: NDArray[np.int64] = pc.rank(pa.concat_arrays(values), tiebreaker="dense").to_numpy().astype(np.int64)
        return ranks


@dataclass(frozen=True, eq=False)
class LevelRows:
    """The rows of one table that take part, those of one parent next to each other and in sequence.

    `codes` has a line for each released column; `parent` and `person` are places of rows in the tables above.
    `fine` has a line for each column that is also read in finer pieces.
    """

    names: tuple[str, ...]
    codes: Codes
    parent: Places
    person: Places
    fine: Codes = field(default_factory=lambda: np.zeros((0, 0), np.int64))

    def __len__(self) -> int:
        return len(self.person)

    def children(self, rows: int) -> NDArray[np.int64]:
        """Return how many rows each of so many parents has."""
        return np.bincount(self.parent, minlength=rows).astype(np.int64)

    def column(self, name: str) -> NDArray[np.int64]:
        """Return the codes of a column."""
        codes: NDArray[np.int64] = self.codes[self.names.index(name)]
        return codes

    def previous(self) -> Codes:
        """Return the codes of the row before, of the same parent, each one higher; 0 for a first row."""
        first = np.append(True, self.parent[1:] != self.parent[:-1])[: len(self)]
        return np.where(first, 0, self.codes[:, np.arange(len(self)) - 1] + 1)


def read_levels(
    tables: LinkedTables,
    classes: Sequence[tuple[Classes, ...]],
    coins: Coins,
    fine: Sequence[tuple[Classes, ...]] = (),
) -> dict[str, LevelRows]:
    """Read every table, the people first, and keep what takes part; `classes` are those of each table's columns.

    `fine` are the finer pieces of each table's columns, where they are read.
    """
    schema = tables.schema
    pieces = fine or ((),) * len(classes)
    column = schema[schema.unit.column or ""]
    people = _coded(tables.tables[0], classes[0], (column,), None, pieces[0])
    names, whole = people.ids(column.name), (people.matrix >= 0).all(axis=0)
    place = _numbered(names)
    chosen = limited(np.where(whole, place, _NOBODY), None, 1, schema.unit.more, coins)
    nobody = np.full(len(chosen), _NOBODY)
    codes = people.matrix[:, chosen].astype(np.int64)
    finer = people.pieces[:, chosen].astype(np.int64)
    levels = {schema.name: LevelRows(people.names, codes, nobody, np.arange(len(chosen)), finer)}
    keys = {schema.name: names.take(pa.array(chosen))}
    for child, table, own, more in zip(schema.tables, tables.tables[1:], classes[1:], pieces[1:], strict=True):
        rows = _coded(table, own, tuple(child.schema[key] for key in child.keys), child.order, more)
        above = (keys[child.parent], keys[schema.name])
        levels[child.name], picked = joined(child, rows, levels[child.parent], above, coins)
        if child.id is not None:
            keys[child.name] = rows.ids(child.id).take(pa.array(picked))
    return levels


def joined(
    child: ChildTable, rows: CodedRows, above: LevelRows, keys: tuple[pa.Array, pa.Array], coins: Coins
) -> tuple[LevelRows, Places]:
    """Join a table to the rows above that take part, and cut it; return also which of its rows are kept.

    `keys` are those of the parent's rows and of the people.  Where the table has the person ID column, a row is joined
    by person and parent; rows without a parent that takes part are dropped, and so are those of another person.
    """
    parent = parents_of(child, rows, above, keys)
    whole = (rows.matrix >= 0).all(axis=0) & (parent >= 0)
    person = np.where(whole, above.person[np.maximum(parent, 0)] if len(above) else _NOBODY, _NOBODY)
    ranks = rows.ranks()
    chosen = limited(person, ranks, child.max_rows, child.more, coins)
    parent, place = parent[chosen], np.zeros(len(chosen), np.int64) if ranks is None else ranks[chosen]
    chosen = chosen[np.lexsort((np.arange(len(chosen)), place, parent))]
    codes, fine = (lines[:, chosen].astype(np.int64) for lines in (rows.matrix, rows.pieces))
    return LevelRows(rows.names, codes, np.sort(parent), person[chosen], fine), chosen


def parents_of(child: ChildTable, rows: KeyTexts, above: LevelRows, keys: tuple[pa.Array, pa.Array]) -> Places:
    """Return the place of each row's parent among the rows above, by the keys of these and of the people."""
    parents, people = keys
    if child.person is None:
        return _places(rows.ids(child.foreign_key), parents)
    owner = _places(rows.ids(child.person), people)
    if child.person == child.foreign_key:
        return owner
    pair = _paired(rows.ids(child.foreign_key), pa.array(owner))
    return _places(pair, _paired(parents, pa.array(above.person)))


def limited(
    person: Places, ranks: NDArray[np.int64] | None, at_most: int, more: ExtraRowsRule | None, coins: Coins
) -> Places:
    """Return the places of at most so many rows of each person: the first by rank and then by coin, or a random choice.

    With a rule for people with more rows, none of theirs are kept.

    >>> from incrowd.noise.system import SystemCoins
    >>> limited(np.array([0, 1, 0, -1, 0]), np.array([3, 1, 1, 1, 2]), 2, None, SystemCoins()).tolist()
    [1, 2, 4]
    """
    draws = coins.below(_COINS, len(person))
    rank = np.zeros(len(person), np.int64) if ranks is None else ranks
    order = np.lexsort((draws, rank, person))
    order = order[person[order] >= 0]
    owner = person[order]
    first = np.append(True, owner[1:] != owner[:-1])[: len(owner)]
    start = np.maximum.accumulate(np.where(first, np.arange(len(owner)), 0))
    number = np.arange(len(owner)) - start
    if more is None:
        return np.sort(order[number < at_most])
    total = np.bincount(owner, minlength=1)
    return np.sort(order[total[owner] <= at_most])


def _coded(
    table: Table,
    classes: tuple[Classes, ...],
    keys: tuple[Column, ...],
    order: str | None,
    fine: tuple[Classes, ...],
) -> CodedRows:
    cells = Cells(tuple(item.recoding for item in classes))
    pieces = Cells(tuple(item.recoding for item in fine)) if fine else None
    ordered = None if order is None else table.schema[order]
    names = dict.fromkeys((*cells.reads, *(key.name for key in keys), *([] if order is None else [order])))
    return table.engine.learn(
        table.rows, list(names), partial(CodedRows, keys, cells=cells, order=ordered, fine=pieces)
    )


def _numbered(names: pa.Array) -> Places:
    """Return a number for each different name; -1 for none."""
    codes = names.dictionary_encode().indices.fill_null(_NOBODY)
    numbers: Places = codes.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


def _places(names: pa.Array, among: pa.Array) -> Places:
    """Return the place of each name among others; -1 for none, and for a missing name."""
    places = pc.index_in(names, value_set=among, skip_nulls=True).fill_null(_NOBODY)
    return places.to_numpy(zero_copy_only=False).astype(np.int64)  # type: ignore[no-any-return]


def _paired(names: pa.Array, people: pa.Array) -> pa.Array:
    """Return the place of a person and a name as one text."""
    return pc.binary_join_element_wise(pc.cast(people, pa.large_string()), names, pa.scalar("|", pa.large_string()))
