"""Totals: ROLLUP, CUBE and GROUPING SETS as sets of keys, each added up from the finest groups of the answer."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

from sqlglot import exp

from incrowd.errors import QuestionRefused
from incrowd.queries.question import Aggregate, AggregateKind, Key

_MOST_SETS = 64
_SETS = (exp.Rollup, exp.Cube, exp.GroupingSets)
_HOLDERS = (*_SETS, exp.Tuple, exp.Paren)
_ADDED = (
    AggregateKind.ROWS, AggregateKind.COUNT, AggregateKind.SUM, AggregateKind.MEAN, AggregateKind.VARIANCE,
    AggregateKind.DEVIATION,
)  # fmt: skip
"""What is read off sums, so that it can be read off the sum of several groups."""


def leaves(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield what a part of GROUP BY names.

    >>> from sqlglot import parse_one
    >>> [leaf.sql() for leaf in leaves(exp.Rollup(expressions=[exp.column("a"), exp.column("b")]))]
    ['a', 'b']
    """
    if isinstance(node, exp.Paren):
        yield from leaves(node.this)
    elif isinstance(node, _HOLDERS):
        for part in node.expressions:
            yield from leaves(part)
    else:
        yield node


def has_sets(nodes: list[exp.Expr]) -> bool:
    """Return whether ROLLUP, CUBE or GROUPING SETS is among the parts of GROUP BY."""
    return any(isinstance(node, _SETS) for node in nodes)


def sets_of(nodes: list[exp.Expr], place: Callable[[exp.Expr], int]) -> tuple[tuple[int, ...], ...]:
    """Return the sets of keys that GROUP BY asks for, each once, by the places that `place` gives to what it names.

    >>> a, b = exp.column("a"), exp.column("b")
    >>> sets_of([exp.Rollup(expressions=[a, b])], {a: 0, b: 1}.__getitem__)
    ((0, 1), (0,), ())
    """
    found: list[frozenset[int]] = [frozenset()]
    for node in nodes:
        found = [one | other for one in found for other in _sets(node, place)]
        if len(found) > _MOST_SETS:
            raise QuestionRefused(f"at most {_MOST_SETS} groupings are answered at once: ask for fewer.")
    return tuple(tuple(sorted(each)) for each in dict.fromkeys(found))


def _sets(node: exp.Expr, place: Callable[[exp.Expr], int]) -> list[frozenset[int]]:
    if isinstance(node, exp.GroupingSets):
        return [each for part in node.expressions for each in _sets(part, place)]
    if not isinstance(node, exp.Rollup | exp.Cube):
        return [frozenset(map(place, leaves(node)))]
    parts = [frozenset(map(place, leaves(part))) for part in node.expressions]
    if isinstance(node, exp.Rollup):
        return [frozenset().union(*parts[:many]) for many in range(len(parts), -1, -1)]
    if 2 ** len(parts) > _MOST_SETS:
        raise QuestionRefused(f"at most {_MOST_SETS} groupings are answered at once: ask for fewer.")
    chosen = (itertools.combinations(parts, many) for many in range(len(parts), -1, -1))
    return [frozenset().union(*each) for each in itertools.chain.from_iterable(chosen)]


def check_totals(keys: tuple[Key, ...], aggregates: list[Aggregate]) -> None:
    """Refuse totals of what is not added up, or of groups that only rows can tell."""
    if any(key.values is None for key in keys):
        raise QuestionRefused(
            "ROLLUP, CUBE and GROUPING SETS add up groups that are known from the declarations: group by columns with "
            "declared values, or ask for each grouping."
        )
    if any(each.kind not in _ADDED for each in aggregates):
        raise QuestionRefused(
            "ROLLUP, CUBE and GROUPING SETS add up COUNT, SUM, AVG, VARIANCE and STDDEV: people, different values, "
            "quantiles and modes of several groups do not follow from those of each. Ask for each grouping."
        )
