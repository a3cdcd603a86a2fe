"""Workload: the tables that matter, those that a policy names or all of few columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

from incrowd.errors import InvalidParameter
from incrowd.methods.synthesis.marginals.junction import Columns

_TRIPLES = 200


def workload_tables(workload: Sequence[Sequence[str]] | None, names: Sequence[str]) -> tuple[Columns, ...]:
    """Return the workload by the numbers of columns: what is named, or all pairs and, if there are few, triples.

    >>> workload_tables(None, ["age", "sex", "zip"])
    ((0, 1), (0, 2), (1, 2), (0, 1, 2))
    >>> workload_tables([["zip", "age"]], ["age", "sex", "zip"])
    ((0, 2),)
    """
    if workload is None:
        numbers = range(len(names))
        triples = math.comb(len(names), 3) <= _TRIPLES
        return (*combinations(numbers, 2), *(combinations(numbers, 3) if triples else ()))
    place = {name: number for number, name in enumerate(names)}
    strange = [name for table in workload for name in table if name not in place]
    if strange:
        raise InvalidParameter(f"the workload names {strange[0]!r}, which is not released.")
    if any(not 2 <= len(set(table)) == len(table) <= 4 for table in workload):
        raise InvalidParameter("a table of the workload has two to four different columns.")
    return tuple(dict.fromkeys(tuple(sorted(place[name] for name in table)) for table in workload))


def table_names(tables: Sequence[Columns], names: Sequence[str]) -> list[list[str]]:
    """Return tables by the names of their columns."""
    return [[names[column] for column in table] for table in tables]
