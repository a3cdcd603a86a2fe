"""Combination: several private questions whose answers are put below each other, joined and computed with.

Each part is a question of its own, and noise makes its answer.  All that follows works on these answers alone: it reads
no row, so it costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from incrowd.core.domain import Type
from incrowd.queries.operations import Gather, Operation, Take
from incrowd.queries.question import OutputColumn, Question

if TYPE_CHECKING:
    from sqlglot import exp


@dataclass(frozen=True)
class SheetColumn:
    """A column of a sheet: what it is called, and its type, None where it is NULL alone."""

    name: str
    type: Type | None


@dataclass(frozen=True)
class PartSheet:
    """The answer to one of the questions.

    `determined_by` are the places of columns that no two rows share all values of, None where nothing is known of it.
    """

    part: int
    columns: tuple[SheetColumn, ...]
    determined_by: frozenset[int] | None


@dataclass(frozen=True)
class RowSheet:
    """One row without columns: what a SELECT without FROM reads."""

    columns: tuple[SheetColumn, ...] = ()
    determined_by: frozenset[int] = frozenset()


@dataclass(frozen=True)
class StackedSheet:
    """Sheets below each other: UNION ALL; columns go by their places, and have the names of the first."""

    sheets: tuple[Sheet, ...]
    columns: tuple[SheetColumn, ...]

    @property
    def determined_by(self) -> None:
        """Nothing: two of the sheets may have the same rows."""
        return


@dataclass(frozen=True)
class JoinedSheet:
    """Two sheets beside each other, where some of their columns are equal; with `padded`, as LEFT JOIN does it.

    `on` are pairs of places, one of each sheet.  At least one sheet is determined by its places among them, so that
    there are no more rows than in both sheets together.
    """

    left: Sheet
    right: Sheet
    on: tuple[tuple[int, int], ...]
    padded: bool

    @property
    def columns(self) -> tuple[SheetColumn, ...]:
        """Those of both sheets, the left one's first."""
        return (*self.left.columns, *self.right.columns)

    @property
    def determined_by(self) -> frozenset[int] | None:
        """What determines a row: the left sheet's, where each of its rows has one partner at most; else of both."""
        right, left = self.right.determined_by, self.left.determined_by
        if left is not None and right is not None and right <= {there for _, there in self.on}:
            return left
        return None if left is None or right is None else left | {len(self.left.columns) + at for at in right}


@dataclass(frozen=True)
class WorkedSheet:
    """A SELECT over a sheet: operations on its rows, whose columns are called c1, c2, … there, and what is shown."""

    source: Sheet
    operations: tuple[Operation, ...]
    outputs: tuple[OutputColumn, ...]

    @property
    def columns(self) -> tuple[SheetColumn, ...]:
        """What is shown."""
        return tuple(SheetColumn(each.name, each.type) for each in self.outputs)

    @property
    def determined_by(self) -> frozenset[int] | None:
        """Where it shows what determined the rows that were gathered last, or those of the source, these columns."""
        gathers = [each for each in self.operations if isinstance(each, Gather)]
        if gathers:
            names = {key.name for key in gathers[-1].keys}
        else:
            found = self.source.determined_by
            if found is None:
                return None
            names = {column_name(at) for at in found}
        shown = {each.expression.unnest().name: at for at, each in enumerate(self.outputs) if _bare(each.expression)}
        return frozenset(shown[name] for name in names) if names <= shown.keys() else None


Sheet = PartSheet | RowSheet | StackedSheet | JoinedSheet | WorkedSheet


def _bare(expression: exp.Expr) -> bool:
    from sqlglot import exp

    return isinstance(expression.unnest(), exp.Column)


def column_name(at: int) -> str:
    """Return what the column at a place is called in operations.

    >>> column_name(0)
    'c1'
    """
    return f"c{at + 1}"


def depth_of(sheet: Sheet) -> int:
    """Return how many sheets lie on each other at most."""
    match sheet:
        case StackedSheet(sheets=sheets):
            return 1 + max(map(depth_of, sheets))
        case JoinedSheet(left=left, right=right):
            return 1 + max(depth_of(left), depth_of(right))
        case WorkedSheet(source=source):
            return 1 + depth_of(source)
    return 1


def is_single(sheet: Sheet, parts: tuple[Question, ...]) -> bool:
    """Return whether a sheet has one row or none, whatever the numbers are."""
    match sheet:
        case PartSheet(part=part):
            asked = parts[part]
            return _one_left(asked.operations, single=not asked.keys or asked.limit in (0, 1))
        case RowSheet():
            return True
        case StackedSheet():
            return False
        case JoinedSheet(left=left, right=right):
            return is_single(left, parts) and is_single(right, parts)
    return _one_left(sheet.operations, single=is_single(sheet.source, parts))


def _one_left(operations: tuple[Operation, ...], *, single: bool) -> bool:
    """Return whether operations leave one row at most, of one or of several."""
    for each in operations:
        single |= (isinstance(each, Take) and each.limit in (0, 1)) or (isinstance(each, Gather) and not each.keys)
    return single


@dataclass(frozen=True)
class Combination:
    """A question that is made of several.

    `text` is its normalized SQL.  `parts` are the questions, each once, all about the same datasets; `sheet` is what is
    made of their answers.
    """

    text: str
    parts: tuple[Question, ...]
    sheet: Sheet

    @property
    def datasets(self) -> tuple[str, ...]:
        """The datasets that each part reads."""
        return self.parts[0].datasets

    @property
    def caps(self) -> tuple[str, ...]:
        """What numbers are of, each sentence once."""
        return tuple(dict.fromkeys(each.caps.sentence for each in self.parts if each.caps.sentence))


Interpreted = Question | Combination
"""What a text asks: one question, or several whose answers meet."""
