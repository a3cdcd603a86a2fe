"""Levels: the columns of the model of each linked table, and what one row of it weighs.

The model of a table below the people has its own columns, how many rows each of its rows has in the tables below it,
the given columns above, the class of the person's number of rows, and in a sequence the columns of the row before.
A row weighs floor(W / cap), where cap is the upper end of the class (1, 2, 3-4, 5-8, ...): n rows weigh at most W, so
one person moves every table by at most W, in the sum of absolute values and hence in Euclidean norm.  Inside a class
all rows weigh the same, so conditional distributions are those of the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from incrowd.core.linked import ChildTable, LinkedSchema
from incrowd.methods.synthesis.linked.rows import LevelRows
from incrowd.methods.synthesis.marginals.evaluation import WeightedRows
from incrowd.methods.synthesis.marginals.junction import Columns
from incrowd.methods.synthesis.marginals.model import Codes

WHOLE = 2**10
"""W: what all rows of a person in one table weigh together, at most."""
_TRIPLES = 200  # candidates share ε: more of them make each choice noisier


class ModelPart(StrEnum):
    """What a column of a model is to the table."""

    OWN = "own"
    NUMBER = "number"
    """How many rows a row has in a table below."""
    GIVEN = "given"
    CLASS = "class"
    """The class of the person's number of rows."""
    PREVIOUS = "previous"


@dataclass(frozen=True)
class LevelColumn:
    """A column of the model of a table: which part it is, of which table, which column of it, how many values."""

    part: ModelPart
    table: str
    size: int
    column: str | None = None

    @property
    def target(self) -> bool:
        """Whether it is drawn, and not given by the rows above and before."""
        return self.part in (ModelPart.OWN, ModelPart.NUMBER)


def caps(max_rows: int) -> tuple[int, ...]:
    """Return the upper ends of the classes of a number of rows: powers of two, and the largest number itself.

    >>> caps(1), caps(6), caps(8)
    ((1,), (1, 2, 4, 6), (1, 2, 4, 8))
    """
    powers = [2**power for power in range(max_rows.bit_length()) if 2**power < max_rows]
    return (*powers, max_rows)


def class_of(numbers: NDArray[np.int64], max_rows: int) -> NDArray[np.int64]:
    """Return the class of each number of rows, which is 1 at least.

    >>> class_of(np.array([1, 2, 3, 4, 5, 6]), 6).tolist()
    [0, 1, 2, 2, 3, 3]
    """
    return np.searchsorted(np.array(caps(max_rows)), numbers).astype(np.int64)


def weights_of(classes: NDArray[np.int64], max_rows: int) -> NDArray[np.int64]:
    """Return what a row weighs whose person is in a class.

    >>> weights_of(np.array([0, 1, 2, 3]), 6).tolist()
    [1024, 512, 256, 170]
    """
    weights: NDArray[np.int64] = (WHOLE // np.array(caps(max_rows)))[classes]
    return weights


@dataclass(frozen=True)
class Level:
    """The model of one table: its columns in order, and for a table below the people what the policy says of it."""

    name: str
    columns: tuple[LevelColumn, ...]
    child: ChildTable | None = None

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many values each column has."""
        return tuple(column.size for column in self.columns)

    @property
    def weight(self) -> int:
        """By how much a person moves its tables, at most: by one row of the people, or by W."""
        return 1 if self.child is None else WHOLE

    def places(self, *parts: ModelPart) -> Columns:
        """Return the numbers of the columns that are such a part."""
        return tuple(number for number, column in enumerate(self.columns) if column.part in parts)

    @property
    def targets(self) -> Columns:
        """The columns that are drawn."""
        return self.places(ModelPart.OWN, ModelPart.NUMBER)

    @property
    def predictors(self) -> Columns:
        """The columns that the rows above and before give."""
        return self.places(ModelPart.GIVEN, ModelPart.CLASS, ModelPart.PREVIOUS)

    def workload(self) -> tuple[Columns, ...]:
        """Return the tables that matter: all pairs with a column that is drawn, and triples if there are few."""
        targets, numbers = set(self.targets), range(len(self.columns))
        pairs, triples = ([table for table in combinations(numbers, size) if targets & set(table)] for size in (2, 3))
        return (*pairs, *(triples if len(triples) <= _TRIPLES else ()))


def levels_of(schema: LinkedSchema, sizes: Mapping[str, Mapping[str, int]]) -> tuple[Level, ...]:
    """Return the model of each table, the people first; `sizes` are those of the released columns of each table."""
    return (
        Level(schema.name, (*_own(schema, schema.name, sizes),)),
        *(Level(child.name, _columns(schema, child, sizes), child) for child in schema.tables),
    )


def _own(schema: LinkedSchema, name: str, sizes: Mapping[str, Mapping[str, int]]) -> tuple[LevelColumn, ...]:
    own = (LevelColumn(ModelPart.OWN, name, size, column) for column, size in sizes[name].items())
    numbers = (LevelColumn(ModelPart.NUMBER, below.name, below.max_rows + 1) for below in schema.below(name))
    return (*own, *numbers)


def _columns(
    schema: LinkedSchema, child: ChildTable, sizes: Mapping[str, Mapping[str, int]]
) -> tuple[LevelColumn, ...]:
    above = (
        LevelColumn(ModelPart.GIVEN, owner, sizes[owner][column], column) for owner, column in schema.predictors(child)
    )
    previous = (
        LevelColumn(ModelPart.PREVIOUS, child.name, size + 1, column) for column, size in sizes[child.name].items()
    )
    return (
        *_own(schema, child.name, sizes),
        *above,
        LevelColumn(ModelPart.CLASS, child.name, len(caps(child.max_rows))),
        *(() if child.order is None or child.max_rows == 1 else previous),
    )


def given_codes(level: Level, levels: Mapping[str, LevelRows]) -> Codes:
    """Return the given columns of each row of a table, a line each: those above, and the class of its person's number.

    None are given for the people; the columns of the row before are not among them.
    """
    child, rows = level.child, levels[level.name]
    if child is None:
        return np.zeros((0, len(rows)), np.int64)
    places, lines = {child.parent: rows.parent}, []
    for column in level.columns:
        if column.part is ModelPart.GIVEN and column.column is not None:
            if column.table not in places:  # one level further up, where there are only people
                places[column.table] = rows.person
            lines.append(levels[column.table].column(column.column)[places[column.table]])
    numbers = np.bincount(rows.person, minlength=1)[rows.person]
    return np.array([*lines, class_of(numbers, child.max_rows)], np.int64).reshape(len(lines) + 1, len(rows))


def weighted_rows(level: Level, levels: Mapping[str, LevelRows]) -> WeightedRows:
    """Return the rows of a table as its model sees them, each with its weight: 1 for a row of the people."""
    rows, child = levels[level.name], level.child
    numbers = [levels[column.table].children(len(rows)) for column in level.columns if column.part is ModelPart.NUMBER]
    predictors = given_codes(level, levels)
    lines = [*rows.codes, *numbers, *predictors, *(rows.previous() if level.places(ModelPart.PREVIOUS) else ())]
    codes = np.array(lines, np.int64).reshape(len(level.sizes), len(rows))
    weights = np.ones(len(rows), np.int64) if child is None else weights_of(predictors[-1], child.max_rows)
    return WeightedRows(level.sizes, codes, weights)
