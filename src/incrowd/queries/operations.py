"""Operations: what is done with the rows of a noisy answer, one after the other, and with several answers.

Answers are put below each other, joined and computed with on sheets.  All of it works on answers alone: it reads no
row, so it costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from incrowd.core.domain import Type

if TYPE_CHECKING:
    from sqlglot import exp

    from incrowd.queries.query import OutputColumn, Query

MOST_NEIGHBORS = 1000
"""How many rows before and behind a row a window reaches at most, unless it reaches to the end."""


class Function(StrEnum):
    """What is computed over a window, or over the rows of a group of an answer."""

    ROW_NUMBER = "ROW_NUMBER"
    RANK = "RANK"
    DENSE_RANK = "DENSE_RANK"
    PERCENT_RANK = "PERCENT_RANK"
    CUME_DIST = "CUME_DIST"
    NTILE = "NTILE"
    LAG = "LAG"
    LEAD = "LEAD"
    FIRST_VALUE = "FIRST_VALUE"
    LAST_VALUE = "LAST_VALUE"
    COUNT = "COUNT"
    COUNT_DISTINCT = "COUNT DISTINCT"
    SUM = "SUM"
    AVG = "AVG"
    MIN = "MIN"
    MAX = "MAX"
    MEDIAN = "MEDIAN"


@dataclass(frozen=True)
class Keep:
    """Rows in which a condition holds stay."""

    condition: exp.Expression

    @property
    def trees(self) -> Iterator[exp.Expr]:
        """The expressions that it reads."""
        yield self.condition


@dataclass(frozen=True)
class Sort:
    """Rows are put in order."""

    terms: tuple[exp.Ordered, ...]

    @property
    def trees(self) -> Iterator[exp.Expr]:
        """The expressions that it reads."""
        yield from (term.this for term in self.terms)


@dataclass(frozen=True)
class Take:
    """The rows from a place on stay, and so many of them."""

    limit: int | None
    offset: int = 0

    @property
    def trees(self) -> Iterator[exp.Expr]:
        """The expressions that it reads: none."""
        yield from ()


@dataclass(frozen=True)
class WindowColumn:
    """A column is computed from the rows beside each row: those of the same part, in an order.

    `before` and `behind` tell how many rows of the part belong to the window of a row, None: all on that side.  Without
    them it is all rows up to the last that is equal to it in the order, or the whole part if there is none.
    """

    name: str
    function: Function
    arguments: tuple[exp.Expression, ...]
    part: tuple[exp.Expression, ...]
    order: tuple[exp.Ordered, ...]
    framed: bool = False
    before: int | None = None
    behind: int | None = None
    type: Type = Type.DECIMAL

    @property
    def trees(self) -> Iterator[exp.Expr]:
        """The expressions that it reads."""
        yield from (*self.arguments, *self.part, *(term.this for term in self.order))


@dataclass(frozen=True)
class Total:
    """A number of each group of rows of an answer: of an expression, or of the rows."""

    name: str
    function: Function
    argument: exp.Expression | None
    type: Type = Type.DECIMAL


@dataclass(frozen=True)
class GatherKey:
    """What rows of an answer are grouped by, under a name."""

    name: str
    expression: exp.Expression
    type: Type


@dataclass(frozen=True)
class Gather:
    """Rows that are equal in some expressions become one, with numbers of them; without expressions all become one."""

    keys: tuple[GatherKey, ...]
    totals: tuple[Total, ...]

    @property
    def trees(self) -> Iterator[exp.Expr]:
        """The expressions that it reads."""
        yield from (key.expression for key in self.keys)
        yield from (total.argument for total in self.totals if total.argument is not None)


Operation = Keep | Sort | Take | WindowColumn | Gather


def types_after(operations: Iterable[Operation], types: Mapping[str, Type]) -> dict[str, Type]:
    """Return the names that are there after operations, and their types.

    >>> types_after([Gather((), (Total("a1", Function.COUNT, None, Type.INTEGER),))], {"k1": Type.TEXT})
    {'a1': <Type.INTEGER: 'integer'>}
    """
    names = dict(types)
    for operation in operations:
        if isinstance(operation, WindowColumn):
            names[operation.name] = operation.type
        elif isinstance(operation, Gather):
            names = {key.name: key.type for key in operation.keys} | {
                total.name: total.type for total in operation.totals
            }
    return names


@dataclass(frozen=True)
class SheetColumn:
    """A column of a sheet: what it is called, and its type, None where it is NULL alone."""

    name: str
    type: Type | None


@dataclass(frozen=True)
class PartSheet:
    """The answer to one of the queries.

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
        return tuple(SheetColumn(output.name, output.type) for output in self.outputs)

    @property
    def determined_by(self) -> frozenset[int] | None:
        """Where it shows what determined the rows that were gathered last, or those of the source, these columns."""
        gathers = [operation for operation in self.operations if isinstance(operation, Gather)]
        if gathers:
            names = {key.name for key in gathers[-1].keys}
        else:
            source = self.source.determined_by
            if source is None:
                return None
            names = {column_name(at) for at in source}
        places = {
            output.expression.unnest().name: at for at, output in enumerate(self.outputs) if _bare(output.expression)
        }
        return frozenset(places[name] for name in names) if names <= places.keys() else None


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


def is_single(sheet: Sheet, parts: tuple[Query, ...]) -> bool:
    """Return whether a sheet has one row or none, whatever the numbers are."""
    match sheet:
        case PartSheet(part=part):
            query = parts[part]
            return _one_left(query.operations, single=not query.keys or query.limit in (0, 1))
        case RowSheet():
            return True
        case StackedSheet():
            return False
        case JoinedSheet(left=left, right=right):
            return is_single(left, parts) and is_single(right, parts)
    return _one_left(sheet.operations, single=is_single(sheet.source, parts))


def _one_left(operations: tuple[Operation, ...], *, single: bool) -> bool:
    """Return whether operations leave one row at most, of one or of several."""
    for operation in operations:
        single |= (isinstance(operation, Take) and operation.limit in (0, 1)) or (
            isinstance(operation, Gather) and not operation.keys
        )
    return single
