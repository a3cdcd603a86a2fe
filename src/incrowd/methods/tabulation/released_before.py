"""Tables released before: read from their files, and tied to the unknowns of a new one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from incrowd.core.recoding import Recoding
from incrowd.engines.readers.sources import open_source
from incrowd.errors import InvalidParameter
from incrowd.methods.tabulation.axis import TableAxis
from incrowd.methods.tabulation.frame import TableFrame, Whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
        found = [_finest(schema, name, levels.get(name), total, tables) for name in columns]
        axes = tuple(axis for axis, _ in found)
        unknowns = int(np.prod([len(axis.leaves) for axis in axes]))
        if unknowns > MOST_UNKNOWNS:
            raise InvalidParameter(
                f"this table and those before it have {unknowns:,} finest cells together, and {MOST_UNKNOWNS:,} are "
                "the most. Choose higher levels, or hold it against fewer tables."
            )
        frame = TableFrame(axes)
        places = [[axis.place(label) for label in mine.labels] for axis, mine in zip(axes, own.axes, strict=False)]
        rest = [[0]] * (len(axes) - len(own.axes))
        cells = np.ravel_multi_index(np.ix_(*map(np.array, [*places, *rest])), frame.shape).ravel()
        before = [_cell(frame, table, row) for table in tables for row in table.labels]
        empty = [_cell(frame, table, row) for table in tables for row in table.empty]
        values = np.array([value for table in tables for value in table.values], np.int64)
        return cls(
            frame,
            {name: level for name, (_, level) in zip(columns, found, strict=True)},
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


def _cell(frame: TableFrame, table: ReleasedTable, row: tuple[str | None, ...]) -> int:
    known = dict(zip(table.columns, row, strict=True))
    nodes = [axis.place(known[axis.column]) if axis.column in known else 0 for axis in frame.axes]
    return int(np.ravel_multi_index(nodes, frame.shape))
