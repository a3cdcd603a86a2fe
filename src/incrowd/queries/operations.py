"""Operations: what is done with the rows of a noisy answer, one after the other; it reads nothing else and is free."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from incrowd.core.domain import Type

if TYPE_CHECKING:
    from sqlglot import exp

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
    found = dict(types)
    for each in operations:
        if isinstance(each, WindowColumn):
            found[each.name] = each.type
        elif isinstance(each, Gather):
            found = {key.name: key.type for key in each.keys} | {total.name: total.type for total in each.totals}
    return found
