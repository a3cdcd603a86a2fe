"""Constraints: what is declared true of every row, as cells that no model gives a chance and as numbers that fit.

A constraint is public.  It is never compared with rows before a release: the model gives impossible cells no chance,
whatever was counted there, and numbers are drawn inside their classes between the ends that a constraint leaves them.
So margins are not bent by throwing drawn rows away.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidParameter
from incrowd.methods.shared.columns import text_of
from incrowd.methods.synthesis.marginals.number_range import NumberRange

if TYPE_CHECKING:
    from incrowd.core.recoding import Classes

Codes = NDArray[np.int64]
Stated = Mapping[str, str | tuple[str, ...]]
_MISSING = "missing"


@dataclass(frozen=True)
class Constraint:
    """One thing that is true of every row: exactly one of `never`, `when`, `column`, `order`, `total`, `unique`.

    `never` are labels that no row has together.  `when` some labels, `then` only these.  `column` follows from the
    column `by`: as `table` says, else by the hierarchy of `by`.  Numbers or days are in `order`, each at least as
    large as the one before.  `total` is the sum of `parts`.  Every row has another value of `unique`.
    """

    never: Stated | None = None
    when: Stated | None = None
    then: Stated | None = None
    column: str | None = None
    by: str | None = None
    table: Stated | None = None
    order: tuple[str, ...] | None = None
    total: str | None = None
    parts: tuple[str, ...] | None = None
    unique: str | None = None

    def __post_init__(self) -> None:
        kinds = ("never", "when", "column", "order", "total", "unique")
        stated = [name for name in kinds if getattr(self, name) is not None]
        if len(stated) != 1:
            raise InvalidParameter(
                "a constraint states exactly one of never, when (with then), column (with by), order, total (with "
                f"parts), unique; this one states {' and '.join(stated) or 'none'}."
            )
        partners = {"then": "when", "by": "column", "table": "column", "parts": "total"}
        for name, partner in partners.items():
            if getattr(self, name) is not None and getattr(self, partner) is None:
                raise InvalidParameter(f"in a constraint, {name} stands beside {partner}.")
        for name, partner in (("when", "then"), ("column", "by"), ("total", "parts")):
            if getattr(self, name) is not None and not getattr(self, partner):
                raise InvalidParameter(f"in a constraint, {name} needs {partner} beside it.")
        for names in (self.order, self.parts):
            if names is not None and not 2 <= len(set(names)) == len(names):
                raise InvalidParameter("order and parts name two or more different columns.")


class ConstraintKind(StrEnum):
    """What is named between numbers when they are drawn."""

    ORDER = "order"
    SUM = "sum"
    UNIQUE = "unique"


@dataclass(frozen=True)
class NumberConstraint:
    """What holds between columns of numbers in every row: an order, a sum (the total comes last), or one of a kind."""

    kind: ConstraintKind
    columns: tuple[str, ...]

    def __str__(self) -> str:
        if self.kind is ConstraintKind.ORDER:
            return " ≤ ".join(self.columns)
        if self.kind is ConstraintKind.SUM:
            return f"{' + '.join(self.columns[:-1])} = {self.columns[-1]}"
        return f"each {self.columns[0]} once"

    def possible(self, ends: Sequence[tuple[Codes, Codes]]) -> NDArray[np.bool_]:
        """Return of each combination of classes whether some numbers of it fit, given the ends of every class.

        >>> two = np.array([0, 10]), np.array([9, 19])
        >>> NumberConstraint(ConstraintKind.ORDER, ("from", "to")).possible([two, two]).tolist()
        [[True, True], [False, True]]
        """
        lows = np.meshgrid(*(low for low, _ in ends), indexing="ij")
        highs = np.meshgrid(*(high for _, high in ends), indexing="ij")
        if self.kind is ConstraintKind.ORDER:
            ordered: NDArray[np.bool_] = np.logical_and.reduce(
                [lows[a] <= highs[b] for a, b in combinations(range(len(ends)), 2)]
            )
            return ordered
        low, high = np.sum(lows[:-1], axis=0), np.sum(highs[:-1], axis=0)
        fits: NDArray[np.bool_] = (low <= highs[-1]) & (lows[-1] <= high)
        return fits

    @property
    def tables(self) -> tuple[tuple[str, ...], ...]:
        """The tables in which impossible cells show: every pair of an order, all columns of a sum."""
        if self.kind is ConstraintKind.ORDER:
            return tuple(combinations(self.columns, 2))
        return (self.columns,) if self.kind is ConstraintKind.SUM else ()


def stated_zeros(constraint: Constraint, classes: Mapping[str, Classes]) -> list[dict[str, tuple[str, ...]]]:
    """Return the labels that never occur together by a constraint, as zeros are stated; none for those of numbers."""
    if constraint.never is not None:
        return [{name: _labels(labels) for name, labels in constraint.never.items()}]
    if constraint.when is not None and constraint.then is not None:
        when = {name: _labels(labels) for name, labels in constraint.when.items()}
        both = [name for name in constraint.then if name in when]
        if both:
            raise InvalidParameter(f"a constraint names {both[0]!r} in when and in then: name it once.")
        return [when | {name: _others(name, labels, classes)} for name, labels in constraint.then.items()]
    return _determined(constraint, classes) if constraint.column is not None else []


def number_constraint(constraint: Constraint) -> NumberConstraint | None:
    """Return what a constraint says of numbers, if it does."""
    if constraint.order is not None:
        return NumberConstraint(ConstraintKind.ORDER, constraint.order)
    if constraint.total is not None:
        return NumberConstraint(ConstraintKind.SUM, (*(constraint.parts or ()), constraint.total))
    return None if constraint.unique is None else NumberConstraint(ConstraintKind.UNIQUE, (constraint.unique,))


def _labels(stated: str | tuple[str, ...]) -> tuple[str, ...]:
    return (stated,) if isinstance(stated, str) else tuple(stated)


def _own(name: str, classes: Mapping[str, Classes]) -> Classes:
    if name not in classes:
        raise InvalidParameter(f"a constraint names {name!r}, which is not released.")
    return classes[name]


def _label_list(name: str, classes: Mapping[str, Classes]) -> list[str]:
    return [_MISSING if label is None else label for label in text_of(_own(name, classes).values()).to_pylist()]


def _others(name: str, stated: str | tuple[str, ...], classes: Mapping[str, Classes]) -> tuple[str, ...]:
    """Return all labels of a column but some."""
    named, labels = _labels(stated), _label_list(name, classes)
    unknown = [label for label in named if label not in labels]
    if unknown:
        raise InvalidParameter(
            f"a constraint names {unknown[0]!r} of {name!r}, which it does not show at its level: name its labels "
            "there."
        )
    return tuple(label for label in labels if label not in named)


def _determined(constraint: Constraint, classes: Mapping[str, Classes]) -> list[dict[str, tuple[str, ...]]]:
    """Return for each label of a column which labels of the column that it determines never occur with it."""
    target, source = str(constraint.column), str(constraint.by)
    if target == source:
        raise InvalidParameter(f"a constraint says that {target!r} follows from itself: name two columns.")
    follows = _table(constraint, classes) if constraint.table is not None else _hierarchy(source, target, classes)
    by_value: dict[str, list[str]] = {}
    for label, value in follows.items():
        by_value.setdefault(value, []).append(label)
    zeros = [{source: tuple(labels), target: _others(target, value, classes)} for value, labels in by_value.items()]
    return [zero for zero in zeros if zero[target]]


def _table(constraint: Constraint, classes: Mapping[str, Classes]) -> dict[str, str]:
    """Return the label that each label determines, as a public table says: a value with the labels that have it."""
    source, follows = str(constraint.by), dict[str, str]()
    for value, labels in (constraint.table or {}).items():
        for label in _labels(labels):
            if label in follows:
                raise InvalidParameter(f"the table of {constraint.column!r} names {label!r} of {source!r} twice.")
            follows[label] = value
    unknown = [label for label in follows if label not in _label_list(source, classes)]
    if unknown:
        raise InvalidParameter(
            f"the table of {constraint.column!r} names {unknown[0]!r}, which {source!r} does not show."
        )
    return follows


def _hierarchy(source: str, target: str, classes: Mapping[str, Classes]) -> dict[str, str]:
    """Return the label that each label determines by a level of the source's hierarchy with the target's labels."""
    own, labels_there = _own(source, classes), set(_label_list(target, classes))
    for level in range(own.recoding.level + 1, own.recoding.column.hierarchy.height):
        above, codes = own.rise(level)
        labels = text_of(above.labels()).to_pylist()
        marks = len(own.marks)
        follows = dict(zip(_label_list(source, classes)[:marks], (labels[code] for code in codes[:marks]), strict=True))
        if set(follows.values()) <= labels_there:
            return follows
    raise InvalidParameter(
        f"no level of the hierarchy of {source!r} has the labels of {target!r}: give a table, each label of {target!r} "
        f"with those of {source!r} that have it."
    )


def require_compatible(constraints: Sequence[NumberConstraint], ranges: Mapping[str, NumberRange]) -> None:
    """Refuse constraints of columns without drawn numbers, of unlike ones, and those that share a column otherwise."""
    seen: dict[str, NumberConstraint] = {}
    named = [name for constraint in constraints for name in constraint.columns]
    for constraint in constraints:
        for name in constraint.columns:
            if name not in ranges:
                raise InvalidParameter(
                    f"a constraint on numbers names {name!r}, whose numbers are not drawn: it needs declared bounds "
                    "and intervals, cuts or dates as its hierarchy, and no class for values outside."
                )
            earlier = seen.setdefault(name, constraint)
            if earlier is not constraint and not {earlier.kind, constraint.kind} == {ConstraintKind.ORDER}:
                raise InvalidParameter(f"{name!r} is part of two constraints, one of which is no order: keep one.")
        forms = {(ranges[name].whole, ranges[name].days, ranges[name].decimals) for name in constraint.columns}
        days = any(ranges[name].days for name in constraint.columns)
        if len(forms) > 1 or (days and constraint.kind is ConstraintKind.SUM):
            raise InvalidParameter(
                f"{', '.join(constraint.columns)} are in one constraint: let all be whole, or days in an order, or "
                "decimals with the same declared decimals."
            )
        alone = len(constraint.columns) == 2 and all(named.count(name) == 1 for name in constraint.columns)
        if not alone and len({ranges[name].allowed for name in constraint.columns}) > 1:
            raise InvalidParameter(
                f"{', '.join(constraint.columns)} are in orders of more than two columns: declare the same days "
                "for each of them, or for none."
            )
        if constraint.kind is ConstraintKind.UNIQUE and ranges[constraint.columns[0]].allowed:
            raise InvalidParameter(f"{constraint.columns[0]!r} is unique, so its days cannot be declared.")
        if constraint.kind is ConstraintKind.UNIQUE and not ranges[constraint.columns[0]].whole:
            raise InvalidParameter(f"{constraint.columns[0]!r} can be unique as whole numbers or days.")


def closed_orders(constraints: Sequence[NumberConstraint]) -> tuple[NumberConstraint, ...]:
    """Return constraints with every order that follows from several: a ≤ b and b ≤ c make a ≤ c.

    >>> orders = [NumberConstraint(ConstraintKind.ORDER, pair) for pair in (("a", "b"), ("b", "c"))]
    >>> [str(constraint) for constraint in closed_orders(orders)]
    ['a ≤ b', 'b ≤ c', 'a ≤ c']
    """
    pairs = dict.fromkeys(
        pair for item in constraints if item.kind is ConstraintKind.ORDER for pair in combinations(item.columns, 2)
    )
    more = True
    while more:
        joined = [(a, d) for a, b in pairs for c, d in pairs if b == c and (a, d) not in pairs]
        pairs |= dict.fromkeys(joined)
        more = bool(joined)
    if any(a == b for a, b in pairs):
        raise InvalidParameter("orders go round in a circle: take one of them out.")
    others = (item for item in constraints if item.kind is not ConstraintKind.ORDER)
    return (*(NumberConstraint(ConstraintKind.ORDER, pair) for pair in pairs), *others)
