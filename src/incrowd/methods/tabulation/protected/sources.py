"""Sources: what rows contribute to finest cells, tables of cells as they come, and tables that were released before."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.core.cells import Cells
from incrowd.core.recoding import Recoding
from incrowd.engines.readers.sources import open_source
from incrowd.errors import InvalidParameter, SourceInvalid
from incrowd.methods.shared.columns import row_limits
from incrowd.methods.tabulation.protected.frame import TableAxis, TableFrame, Whole
from incrowd.methods.tabulation.protected.rules import CellFacts, Contributions

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.counts import Counts
    from incrowd.core.schema import Schema
    from incrowd.core.table import Table


_LARGEST = 2**53
"""Sums stay below this, so that solvers can write them."""


@dataclass(frozen=True, eq=False)
class Counted:
    """What the rows hold: for each tuple its finest cell, the name of its holder, its number, and how many rows."""

    contributions: Contributions
    names: pa.Array | None

    @classmethod
    def of(
        cls,
        table: Table,
        frame: TableFrame,
        levels: dict[str, int],
        beside: tuple[str | None, str | None],
        coins: Coins,
    ) -> Counted:
        """Count the rows by their finest cells and, where they are named, by holder and number, in one pass."""
        holding, value = beside
        columns = [*levels.items(), *((name, 0) for name in beside if name is not None)]
        cells = Cells(tuple(Recoding(table.schema[name], level) for name, level in columns))
        counts = table.engine.count(table.rows, cells, *row_limits(table, coins))
        codes = dict(zip(counts.names, counts.codes(), strict=True))
        leaves = [_leaf_places(counts, axis.column, frame, n)[codes[axis.column]] for n, axis in enumerate(frame.axes)]
        places = np.ravel_multi_index(leaves, frame.leaf_shape)
        size, names = len(counts), None
        holders, amounts = np.full(size, -1, np.int64), np.ones(size, np.int64)
        if holding is not None:
            names = counts.classes[counts.names.index(holding)].labels()
            named = names.is_valid().to_numpy(zero_copy_only=False)
            holders = np.where(named, np.arange(len(names)), -1)[codes[holding]].astype(np.int64)
        if value is not None:
            amounts = _amounts(counts.classes[counts.names.index(value)].values())[codes[value]]
        _refuse_huge(amounts, counts.counts)
        return cls(Contributions(places, holders, amounts, counts.counts), names)

    def leaves(self, frame: TableFrame) -> Whole:
        """Return the sums of the finest cells."""
        sums = np.zeros(int(np.prod(frame.leaf_shape)), np.int64)
        contributions = self.contributions
        np.add.at(sums, contributions.cells, contributions.amounts * contributions.rows)
        return sums.reshape(frame.leaf_shape)


def _leaf_places(counts: Counts, name: str, frame: TableFrame, number: int) -> NDArray[np.intp]:
    axis = frame.axes[number]
    labels = counts.classes[counts.names.index(name)].open_labels().to_pylist()
    return np.array([axis.ranges[axis.place(label)][0] for label in labels] or [0], np.intp)


def _amounts(values: pa.Array) -> Whole:
    """Return each number as a whole one; what is missing contributes nothing."""
    whole = (
        pc.round(pc.cast(values, pa.float64()), round_mode="half_to_even")
        if pa.types.is_floating(values.type)
        else values
    )
    return np.append(pc.fill_null(pc.cast(whole, pa.int64()), 0).to_numpy(zero_copy_only=False), 0).astype(np.int64)


def _refuse_huge(amounts: Whole, rows: Whole) -> None:
    if float(amounts.astype(np.float64) @ rows.astype(np.float64)) >= _LARGEST:
        raise SourceInvalid("the sum of all numbers is beyond 2^53: tabulate them in thousands or millions.")


@dataclass
class GivenRows:
    """A summary that keeps the rows of a table of cells, as text."""

    names: tuple[str, ...]
    most: int
    _parts: list[pa.Table] = field(default_factory=list)

    def add(self, batch: pa.RecordBatch) -> None:
        """Keep some rows, up to one more than the table can have."""
        if sum(map(len, self._parts)) <= self.most:
            texts = {name: _text(batch.column(name)) for name in self.names}
            self._parts.append(pa.table(texts))

    def merge(self, other: GivenRows) -> None:
        """Take over what another one read of other rows."""
        self._parts += other._parts

    def rows(self) -> list[tuple[str | None, ...]]:
        """Return all rows."""
        return [
            row for part in self._parts for row in zip(*(part[name].to_pylist() for name in self.names), strict=True)
        ]


def _text(column: pa.Array) -> pa.Array:
    return (column.dictionary_decode() if pa.types.is_dictionary(column.type) else column).cast(pa.string())


def given_facts(table: Table, frame: TableFrame, value: str, beside: tuple[str | None, tuple[str, ...]]) -> CellFacts:
    """Read a table of cells and refuse one whose cells are missing, doubled, negative, contradict, or do not add up.

    `beside` names the columns that say how many contributed to a cell, and its largest contributions.
    """
    contributors, largest = beside
    numbers = (value, *([contributors] if contributors else []), *largest)
    names = (*(axis.column for axis in frame.axes), *numbers)
    rows = table.engine.learn(table.rows, list(names), partial(GivenRows, names, frame.size)).rows()
    entries = np.full((len(numbers), frame.size), -1, np.int64)
    for line, row in enumerate(rows, 1):
        labels, texts = row[: len(frame.axes)], row[len(frame.axes) :]
        cell = _cell(frame, labels, line)
        if entries[0, cell] >= 0:
            raise SourceInvalid(f"row {line} of the table has a cell that an earlier row has already.")
        entries[:, cell] = [_whole(text, name, line) for text, name in zip(texts, numbers, strict=True)]
    missing = np.flatnonzero(entries[0] < 0)
    if len(missing):
        raise SourceInvalid(
            f"the table lacks {len(missing):,} of {frame.size:,} cells, among them {frame.place(int(missing[0]))}: "
            "every cell and every total has a row, empty ones with 0."
        )
    cells = entries.reshape(len(numbers), *frame.shape)
    for name, part in zip(numbers[: 2 if contributors else 1], cells, strict=False):
        odd = frame.odd_sum(part, np.ones(frame.shape, np.bool_)) if name == value else None
        if odd is not None:
            raise SourceInvalid(
                f"the table does not add up: {name!r} at {frame.place(odd)} is not the sum of what is under it."
            )
    counts = cells[1] if contributors else cells[0]
    facts = CellFacts(cells[0], counts, cells[len(numbers) - len(largest) :])
    _refuse_contradiction(frame, facts)
    return facts


def given_contributions(frame: TableFrame, facts: CellFacts, *, counts: bool) -> Contributions:
    """Return who contributed to the finest cells of a given table, each somebody else: the table does not say who."""
    values, people = (frame.finest(part).ravel() for part in (facts.values, facts.contributors))
    if not counts and len(facts.largest):
        tops = np.cumsum([frame.finest(rank).ravel() for rank in facts.largest], axis=0)
        enough = np.vstack([tops >= values, np.ones_like(values, np.bool_)])
        people = np.minimum(people, np.where(values > 0, enough.argmax(axis=0) + 1, people))
    cells = np.flatnonzero(people > 0)
    apart = np.full(len(cells), -1, np.int64)
    return Contributions(cells, apart, np.ones(len(cells), np.int64), people[cells].astype(np.int64))


def _refuse_contradiction(frame: TableFrame, facts: CellFacts) -> None:
    """Refuse cells with a number and nobody who contributed, and largest contributions out of order or too large.

    The rules would take such a cell for one that is safe.
    """
    nobody = (facts.values > 0) & (facts.contributors == 0)
    if nobody.any():
        raise SourceInvalid(
            f"the table contradicts itself: the cell {frame.place(_first(nobody))} has a number above 0 and no "
            "contributors."
        )
    rising = (np.diff(facts.largest, axis=0) > 0).any(axis=0) | (facts.largest.sum(axis=0) > facts.values)
    if rising.any():
        raise SourceInvalid(
            f"the table contradicts itself: the largest contributions to the cell {frame.place(_first(rising))} do not "
            "fall from one to the next, or are more than its number."
        )


def _first(flags: NDArray[np.bool_]) -> list[int]:
    return [int(node) for node in np.argwhere(flags)[0]]


def _cell(frame: TableFrame, labels: tuple[str | None, ...], line: int) -> int:
    nodes = []
    for axis, label in zip(frame.axes, labels, strict=True):
        if label not in axis.labels:
            raise SourceInvalid(
                f"row {line} of the table has a label of {axis.column!r} that its hierarchy lacks; the total is "
                f"written {axis.labels[0]!r}."
            )
        nodes.append(axis.place(label))
    return int(np.ravel_multi_index(nodes, frame.shape))


def _whole(text: str | None, name: str, line: int) -> int:
    try:
        number = int(text or "")
    except ValueError:
        raise SourceInvalid(f"row {line} of the table has no whole number in {name!r}.") from None
    if number < 0:
        raise SourceInvalid(
            f"row {line} of the table has a negative number in {name!r}: such tables are not protected here."
        )
    if number >= _LARGEST:
        raise SourceInvalid(f"row {line} of the table has a number in {name!r} beyond 2^53: tabulate in thousands.")
    return number


MOST_UNKNOWNS = 50_000
"""The most finest cells over all columns of tables that are held together."""


@dataclass(frozen=True)
class ReleasedTable:
    """A table as it was published: the labels of its published cells with their numbers, and those of empty cells."""

    name: str
    columns: tuple[str, ...]
    labels: tuple[tuple[str | None, ...], ...]
    values: tuple[int, ...]
    empty: tuple[tuple[str | None, ...], ...]
    sha256: str

    @classmethod
    def read(cls, file: str, number: str) -> ReleasedTable:
        """Read a published table: a column for each label, then the numbers; an empty number was left out."""
        path = Path(file)
        try:
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError as error:
            raise InvalidParameter(
                f"the table {path.name} that was released before cannot be read: {error.strerror or 'no reason given'}."
            ) from None
        names = tuple(open_source(file).names)
        if names[-1:] != (number,) or len(names) < 2:
            raise InvalidParameter(
                f"the table {path.name} that was released before has other columns: labels first, then {number!r}."
            )
        try:
            rows = [(row[:-1], None if row[-1] is None else int(row[-1])) for row in _rows(file, names)]
        except ValueError:
            raise InvalidParameter(f"a number in {path.name}, released before, is not a whole one.") from None
        published = [(labels, value) for labels, value in rows if value is not None]
        labels, values = (tuple(part) for part in zip(*published, strict=True)) if published else ((), ())
        return cls(path.name, names[:-1], labels, values, tuple(row for row, value in rows if value is None), digest)


def _rows(file: str, names: tuple[str, ...]) -> Iterator[tuple[str | None, ...]]:
    for batch in open_source(file).batches(list(names)):
        yield from zip(*(batch.column(name).cast("string").to_pylist() for name in names), strict=True)


@dataclass(frozen=True, eq=False)
class Joint:
    """The finest cells over the columns of several tables, at the level that all of them need.

    `own` says for each cell of the new table which cell of the joint frame it is, `before` the same of every published
    cell of the others, with their `values`, and `empty` of every cell that they left empty.
    """

    frame: TableFrame
    levels: dict[str, int]
    own: NDArray[np.intp]
    before: NDArray[np.intp]
    values: Whole
    empty: NDArray[np.intp]

    @property
    def alone(self) -> bool:
        """Whether no table was released before."""
        return not len(self.before) and not len(self.empty)

    @classmethod
    def of(cls, schema: Schema, own: TableFrame, levels: dict[str, int], tables: tuple[ReleasedTable, ...]) -> Joint:
        """Return the cells of a new table and of those before it; refuse labels that no hierarchy here has."""
        columns = list(dict.fromkeys([*levels, *(name for table in tables for name in table.columns)]))
        total = str(own.axes[0].labels[0])
        finest = [_finest(schema, name, levels.get(name), total, tables) for name in columns]
        axes = tuple(axis for axis, _ in finest)
        unknowns = int(np.prod([len(axis.leaves) for axis in axes]))
        if unknowns > MOST_UNKNOWNS:
            raise InvalidParameter(
                f"this table and those before it have {unknowns:,} finest cells together, and {MOST_UNKNOWNS:,} are "
                "the most. Choose higher levels, or compare it with fewer tables."
            )
        frame = TableFrame(axes)
        places = [[axis.place(label) for label in mine.labels] for axis, mine in zip(axes, own.axes, strict=False)]
        rest = [[0]] * (len(axes) - len(own.axes))
        cells = np.ravel_multi_index(np.ix_(*map(np.array, [*places, *rest])), frame.shape).ravel()
        before = [_released_cell(frame, table, row) for table in tables for row in table.labels]
        empty = [_released_cell(frame, table, row) for table in tables for row in table.empty]
        values = np.array([value for table in tables for value in table.values], np.int64)
        return cls(
            frame,
            {name: level for name, (_, level) in zip(columns, finest, strict=True)},
            cells,
            np.array(before, np.intp),
            values,
            np.array(empty, np.intp),
        )


def _finest(
    schema: Schema, name: str, level: int | None, total: str, tables: tuple[ReleasedTable, ...]
) -> tuple[TableAxis, int]:
    """Return the axis of a column at the highest level that has the labels of all tables."""
    column = schema[name]
    named = [table for table in tables if name in table.columns]
    needed = {row[table.columns.index(name)] for table in named for row in (*table.labels, *table.empty)}
    for tried in range(column.hierarchy.height - 1 if level is None else level, -1, -1):
        recoding = Recoding(column, tried)
        if recoding.classes is None:
            break
        axis = TableAxis.of(recoding, total)[0]
        if needed <= set(axis.labels):
            return axis, tried
    raise InvalidParameter(
        f"a table that was released before has labels of {name!r} that are at no level of its hierarchy here: declare "
        "the same hierarchy as then."
    )


def _released_cell(frame: TableFrame, table: ReleasedTable, row: tuple[str | None, ...]) -> int:
    labels = dict(zip(table.columns, row, strict=True))
    nodes = [axis.place(labels[axis.column]) if axis.column in labels else 0 for axis in frame.axes]
    return int(np.ravel_multi_index(nodes, frame.shape))
