"""The table of SQL functions: binding, evaluation, intervals, refusals and the reference page all read it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlglot import exp

from incrowd.queries.language.expressions import arithmetic, calendar, casts, dates, logic, patterns, texts
from incrowd.queries.language.expressions.function import SqlFunction

FUNCTIONS: tuple[SqlFunction, ...] = (
    *arithmetic.FUNCTIONS,
    *logic.FUNCTIONS,
    *texts.FUNCTIONS,
    *dates.FUNCTIONS,
    *calendar.FUNCTIONS,
    *patterns.FUNCTIONS,
    *casts.FUNCTIONS,
)
"""What is written as a name with arguments in brackets."""

OPERATORS: tuple[SqlFunction, ...] = (*arithmetic.OPERATORS, *logic.OPERATORS, *texts.OPERATORS, *patterns.OPERATORS)
"""What stands between its arguments, or around them."""

BY_NODE: Mapping[type[exp.Expr], SqlFunction] = {
    node: function for function in (*FUNCTIONS, *OPERATORS) for node in function.nodes if node is not exp.Anonymous
}
BY_NAME: Mapping[str, SqlFunction] = {
    name: function for function in FUNCTIONS if exp.Anonymous in function.nodes for name in function.names
}
"""The functions that sqlglot has no kind of node for."""


def names_of(functions: Iterable[SqlFunction]) -> tuple[str, ...]:
    """Return all names of functions, in their order in the alphabet.

    >>> names_of(function for function in FUNCTIONS if function.name in ("SQRT", "POWER"))
    ('POW', 'POWER', 'SQRT')
    """
    return tuple(sorted(name for function in functions for name in function.names if name.isidentifier()))


NAMES = names_of(FUNCTIONS)
"""The functions of rows, by name."""

ANSWER_NAMES = names_of(function for function in FUNCTIONS if function.answered)
"""The functions of noisy answers, by name."""


def function_of(node: exp.Expr) -> SqlFunction | None:
    """Return the function that a node is a call of, or a kind of.

    >>> function_of(exp.Sqrt(this=exp.column("x"))).name, function_of(exp.column("x"))
    ('SQRT', None)
    """
    if isinstance(node, exp.Anonymous):
        return BY_NAME.get(str(node.this).upper())
    return next((BY_NODE[kind] for kind in type(node).__mro__ if kind in BY_NODE), None)
