"""A SQL function: its meaning on rows, on noisy answers and on intervals, its arguments and the length of its texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import Any

from sqlglot import exp

from incrowd.core.domain import Type
from incrowd.errors import InvalidParameter, QueryRefused
from incrowd.queries.language.domain import BoundTree, Constant, decimals
from incrowd.queries.language.trees import only_type

LARGEST = 10**15
"""Numbers in a query stay within plus or minus this: doubles hold its whole numbers exactly, nothing overflows."""

Mean = Callable[[exp.Expr], BoundTree]
"""What an expression means, where it stands."""
Evaluate = Callable[[exp.Expr], Any]
"""The value of an expression in one row of an answer; None is NULL."""
Range = tuple[float, float]
RangeOf = Callable[[exp.Expr], Range | None]
"""The range of an expression of numbers of an answer; None where it has none."""


@dataclass(frozen=True)
class NodeRule:
    """A function on answers that sees its node: it computes with missing values, or not with all of its arguments."""

    compute: Callable[[Any, Evaluate], object]


@dataclass(frozen=True)
class AnswerTypes:
    """The type that arguments have on answers and the type of the value; None is any type, the same for all of them."""

    takes: Type | None = None
    gives: Type | None = None


NUMBERS = AnswerTypes(Type.DECIMAL, Type.DECIMAL)
CONDITIONS = AnswerTypes(Type.BOOLEAN, Type.BOOLEAN)
COMPARED = AnswerTypes(None, Type.BOOLEAN)


class Width(StrEnum):
    """How many characters the value of a function has, given those of its arguments."""

    NUMBER = "a number or a condition"
    FIRST = "as many as its first argument"
    LONGEST = "as many as the longest argument"
    SUM = "as many as all arguments together"
    WRITTEN = "as many as its argument, written as another type"


@dataclass(frozen=True)
class TextWork:
    """How long the value of a function can be as a text, and how many characters it touches beside its arguments.

    A text grows by the factor `growth`, or by the length of the argument of that name.  `cut` names the argument that
    limits its characters.  `searched` arguments are compared at each character of the first.
    """

    width: Width = Width.NUMBER
    growth: int | str = 1
    cut: str | None = None
    searched: int = 0


LONGEST = TextWork(Width.LONGEST)


@dataclass(frozen=True)
class SqlFunction:
    """A function or an operator: how it is written, and what it means wherever it may stand.

    `node` is what sqlglot reads it as; a node with parts beyond `arguments`, or without one of `required`, is refused.
    `on_rows` binds it: the tree that engines run, total on every row, and the domain of its values.  `on_answers`
    computes it from the values of its arguments, NULL where one is missing; a `NodeRule` decides that itself.  None: it
    is refused there.  `rewritten` is what stands in its place on answers before that.  `range` is the range of its
    values, from those of its arguments; None: it has no interval.  `work` bounds its time.
    """

    name: str
    node: type[exp.Expr] | tuple[type[exp.Expr], ...]
    on_rows: Callable[[exp.Expr, Mean], BoundTree]
    arguments: tuple[str, ...] = ("this",)
    other_names: tuple[str, ...] = ()
    on_answers: Callable[..., object] | NodeRule | None = None
    rewritten: Callable[[Any], exp.Expr] | None = None
    types: AnswerTypes = AnswerTypes()
    range: Callable[[Any, RangeOf, Evaluate], Range | None] | None = None
    in_postgres: bool = True
    required: tuple[str, ...] = ()
    work: TextWork = TextWork()

    @property
    def nodes(self) -> tuple[type[exp.Expr], ...]:
        """The kinds of nodes that it is read as."""
        return self.node if isinstance(self.node, tuple) else (self.node,)

    @property
    def names(self) -> tuple[str, ...]:
        """All ways to write it, the usual one first."""
        return (self.name, *self.other_names)

    @property
    def answered(self) -> bool:
        """Whether it may stand over the numbers of a noisy answer."""
        return self.on_answers is not None or self.rewritten is not None

    def check(self, node: exp.Expr) -> None:
        """Refuse a call with too few arguments, or with more than are computed with.

        sqlglot reads `TRIM(x, 'g')` and `TRUNC(x, 2)` too: to ignore what follows x would answer another query.
        """
        if any(node.args.get(name) is None for name in self.required):
            raise InvalidParameter(f"{self.name} takes at least {1 + len(self.required)} arguments: add the others.")
        if any(value and name not in self.arguments for name, value in node.args.items()):
            raise QueryRefused(f"{title(node)} takes fewer arguments here: write its plain form.")


def title(node: exp.Expr) -> str:
    """Return the name under which a part of a query is known.

    >>> title(exp.Sqrt(this=exp.column("x")))
    'SQRT'
    """
    if isinstance(node, exp.Anonymous):
        return str(node.this).upper()[:40]
    return node.sql_name().upper() if isinstance(node, exp.Func) else type(node).__name__.upper()


def number(meaning: BoundTree, what: str) -> BoundTree:
    """Return the meaning if it is a number within bounds.

    >>> from incrowd.queries.language.trees import fixed
    >>> number(fixed("a", Type.TEXT), "+")
    Traceback (most recent call last):
    incrowd.errors.InvalidParameter: + works on numbers, not on a text: use CAST(x AS …).
    """
    extent = meaning.extent
    if not extent.numeric:
        raise InvalidParameter(f"{what} works on numbers, not on {only_type(extent)}: use CAST(x AS …).")
    if not extent.bounded or max(map(abs, extent.ends)) > LARGEST:
        raise QueryRefused(f"{what} needs numbers with bounds within ±10^15: write CLAMP(x, low, high).")
    if extent.type is Type.INTEGER or extent.values is not None:
        return meaning
    return replace(meaning, extent=decimals(*extent.ends, optional=extent.optional))


def within(low: Fraction, high: Fraction, what: str) -> tuple[Fraction, Fraction]:
    """Return the ends of a result, unless they lie beyond the numbers that are computed with.

    >>> within(Fraction(0), Fraction(5), "+")
    (Fraction(0, 1), Fraction(5, 1))
    """
    if max(abs(low), abs(high)) > LARGEST:
        raise QueryRefused(f"the result of {what} could leave ±10^15: write CLAMP(x, low, high) around its parts.")
    return low, high


def text(meaning: BoundTree, what: str) -> BoundTree:
    """Return the meaning if it is a text."""
    return _of_type(meaning, Type.TEXT, f"{what} works on texts", ": use CAST(x AS TEXT).")


def moment(meaning: BoundTree, what: str) -> BoundTree:
    """Return the meaning if it is a date."""
    return _of_type(meaning, Type.DATE, f"{what} works on dates", ": use CAST(x AS DATE).")


def condition(meaning: BoundTree, what: str) -> BoundTree:
    """Return the meaning if it is a condition."""
    return _of_type(meaning, Type.BOOLEAN, f"{what} works on conditions such as x > 1", ".")


def _of_type(meaning: BoundTree, kind: Type, rule: str, hint: str) -> BoundTree:
    if meaning.type is not kind:
        raise InvalidParameter(f"{rule}, not on {only_type(meaning.extent)}{hint}")
    return meaning


def sole(meaning: BoundTree, what: str) -> Constant:
    """Return the one value of an expression that is written out in the query.

    >>> from incrowd.queries.language.trees import fixed
    >>> sole(fixed("a", Type.TEXT), "a pattern")
    'a'
    """
    if meaning.values is None or len(meaning.values) != 1 or meaning.optional:
        raise QueryRefused(f"{what} must be a constant in the query: it is not read from rows.")
    return meaning.values[0]


def whole_number(meaning: BoundTree, what: str, low: int, high: int) -> int:
    """Return the whole number that is written out, between two ends.

    >>> from incrowd.queries.language.trees import fixed
    >>> whole_number(fixed(3, Type.INTEGER), "a length", 0, 9)
    3
    """
    value = sole(meaning, what)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidParameter(f"{what} must be a whole number from {low} to {high}.")
    return value
