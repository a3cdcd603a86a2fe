"""Joint: the tables of a release and those released before, as cells of one cross of all their columns."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from incrowd.core.recoding import Recoding
from incrowd.engines.readers.sources import open_source
from incrowd.errors import InvalidParameter
from incrowd.methods.tabulation.protected.frame import Places, TableAxis, TableFrame, Whole, cells_within
from incrowd.methods.tabulation.protected.rules import Contributions

if TYPE_CHECKING:
    from incrowd.core.schema import Schema


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

    `parts` says for each of the new tables, cell by cell, which cell of the joint frame it is: a cell that two of them
    share is one.  `before` says the same of every published cell of tables released before, with their `values`, and
    `empty` of every cell that they left empty.  `finest` are the finest cells of each table, new ones and those before.
    """

    frame: TableFrame
    levels: dict[str, int]
    parts: tuple[Places, ...]
    before: Places
    values: Whole
    empty: Places
    finest: tuple[Places, ...] = ()

    @cached_property
    def own(self) -> Places:
        """The cells of all new tables, each once."""
        return np.unique(np.concatenate(self.parts))

    @cached_property
    def alone(self) -> bool:
        """Whether no table was released before, and every finest cell here is a cell of a new table."""
        return not len(self.before) and not len(self.empty) and bool(np.isin(self.frame.leaves, self.own).all())

    @classmethod
    def of(
        cls, schema: Schema, own: Sequence[TableFrame], levels: dict[str, int], tables: tuple[ReleasedTable, ...]
    ) -> Joint:
        """Return the cells of new tables and of those before them; refuse labels that no hierarchy here has."""
        columns = list(dict.fromkeys([*levels, *(name for table in tables for name in table.columns)]))
        total = str(own[0].axes[0].labels[0])
        finest = [_finest(schema, name, levels.get(name), total, tables) for name in columns]
        axes = tuple(axis for axis, _ in finest)
        unknowns = int(np.prod([len(axis.leaves) for axis in axes]))
        if unknowns > MOST_UNKNOWNS and (tables or len(own) > 1):
            raise InvalidParameter(
                f"all tables have {unknowns:,} finest cells together, over {', '.join(columns)}, and "
                f"{MOST_UNKNOWNS:,} are the most. Choose higher levels, or fewer tables."
            )
        frame = TableFrame(axes)
        before = [[_released_cell(frame, table, row) for row in table.labels] for table in tables]
        empty = [[_released_cell(frame, table, row) for row in table.empty] for table in tables]
        parts = tuple(cells_within(frame, part) for part in own)
        leaves = [part[table.leaves] for part, table in zip(parts, own, strict=True)]
        leaves += [_finest_cells(frame, *cells) for cells in zip(before, empty, strict=True)]
        values = np.array([value for table in tables for value in table.values], np.int64)
        return cls(
            frame,
            {name: level for name, (_, level) in zip(columns, finest, strict=True)},
            parts,
            np.array(list(chain(*before)), np.intp),
            values,
            np.array(list(chain(*empty)), np.intp),
            tuple(leaves),
        )

    def parts_of(self, cell: int) -> Iterator[Places]:
        """Yield the finest cells of each table that make up a cell, for tables in which some do.

        >>> from incrowd.methods.tabulation.protected.frame import union
        >>> sex, area = TableAxis("sex", ("*", "F", "M"), (-1, 0, 0)), TableAxis("area", ("*", "N", "S"), (-1, 0, 0))
        >>> frame, parts = union((TableFrame((sex,)), TableFrame((sex, area))))
        >>> none = np.zeros(0, np.intp)
        >>> joint = Joint(frame, {}, parts, none, none, none, (parts[0][1:], parts[1][[4, 5, 7, 8]]))
        >>> [part.tolist() for part in joint.parts_of(3)]
        [[3], [4, 5]]
        """
        spans = [
            (node, axis.ends[node]) for axis, node in zip(self.frame.axes, self._nodes(np.array([cell])), strict=True)
        ]
        for cells in self.finest:
            lines = self._nodes(cells)
            inside = [(low <= nodes) & (nodes < high) for (low, high), nodes in zip(spans, lines, strict=True)]
            part = cells[np.logical_and.reduce(inside)]
            if len(part):
                yield part

    def _nodes(self, cells: Places) -> tuple[Places, ...]:
        return np.unravel_index(cells, self.frame.shape)

    def within(self, frame: TableFrame, contributions: Contributions) -> Contributions:
        """Return contributions to the finest cells of one table, from those of all tables."""
        where = np.unravel_index(contributions.cells, self.frame.leaf_shape)
        leaves = dict(zip((axis.column for axis in self.frame.axes), where, strict=True))
        finer = {axis.column: axis for axis in self.frame.axes}
        own = []
        for axis in frame.axes:
            lines = {axis.labels[node]: place for place, node in enumerate(axis.leaves.tolist())}
            fine = finer[axis.column]
            table = [next(lines[fine.labels[n]] for n in path if fine.labels[n] in lines) for path in fine.paths]
            own.append(np.array(table, np.intp)[leaves[axis.column]])
        return replace(contributions, cells=np.ravel_multi_index(own, frame.leaf_shape))


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


def _finest_cells(frame: TableFrame, published: list[int], empty: list[int]) -> Places:
    """Return those of a table's cells whose lines have no other of its lines under them."""
    cells = np.array([*published, *empty], np.intp)
    there = np.ones(len(cells), np.bool_)
    for axis, nodes in zip(frame.axes, np.unravel_index(cells, frame.shape), strict=True):
        lines = np.unique(nodes)
        last = np.append(axis.ends[lines[:-1]] <= lines[1:], True)
        there &= np.isin(nodes, lines[last])
    return cells[there]


def _released_cell(frame: TableFrame, table: ReleasedTable, row: tuple[str | None, ...]) -> int:
    labels = dict(zip(table.columns, row, strict=True))
    nodes = [axis.place(labels[axis.column]) if axis.column in labels else 0 for axis in frame.axes]
    return int(np.ravel_multi_index(nodes, frame.shape))
