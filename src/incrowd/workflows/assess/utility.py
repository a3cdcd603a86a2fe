"""Utility: what a reader of the release can still learn, who spreads each label evenly over what it stands for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from incrowd.core.schema import Role, Schema
from incrowd.measures.coded import Coded
from incrowd.measures.score import Score
from incrowd.measures.utility.distances import Dependency, MarginalDistance, dependencies, marginal_distance
from incrowd.measures.utility.learning import LearnedScore, learning
from incrowd.measures.utility.regressions import Propensity, coefficients, propensity
from incrowd.measures.utility.workload import workload_error
from incrowd.workflows.assess.comparison import Original, ShownTable

_TARGETS = 3
_CLASSES = 12
_MANY = 2000


@dataclass(frozen=True)
class Utility:
    """Marginals, dependencies, propensity, regressions, models and counts; what does not apply is None or empty.

    `overlap` is the mean overlap of intervals of regression coefficients by target column.
    """

    marginals: tuple[MarginalDistance, ...]
    dependencies: tuple[Dependency, ...]
    propensity: Propensity | None
    overlap: Mapping[str, float]
    models: tuple[LearnedScore, ...]
    workload: Score | None


def utility(tables: Sequence[ShownTable], original: Original, schema: Schema) -> Utility:
    """Hold what can be read from a release against the original."""
    before = original.coded
    after = [table.values(before) for table in tables]
    single = after[0] if len(after) == 1 and after[0].rows and len(after[0].names) else None
    shown = None if single is None else before.only([before.place(name) for name in single.names])
    return Utility(
        tuple(each for table in tables for each in _marginals(table, before)),
        dependencies(before, [table for table in after if table.rows and len(table.names) > 1]),
        None if single is None or shown is None else propensity(shown, single),
        {} if single is None or shown is None else _overlaps(shown, single),
        () if single is None or shown is None else _models(shown, single, schema),
        None if single is None or shown is None else workload_error(shown, single),
    )


def _marginals(table: ShownTable, before: Coded) -> list[MarginalDistance]:
    found = []
    for place in table.read:
        book, name = table.books[place], table.names[place]
        column = before.place(name)
        if book is None or not table.total:
            continue
        rows = np.bincount(table.codes[place], table.rows, len(book.lengths)).astype(float)
        found.append(marginal_distance(name, before.marginal(column), book.spread(rows), before.positions[column]))
    return found


def _overlaps(before: Coded, after: Coded) -> dict[str, float]:
    ordered = [name for name, positions in zip(before.names, before.positions, strict=True) if positions is not None]
    found = {name: coefficients(before, after, name) for name in ordered[:_TARGETS]}
    return {name: float(np.mean([each.overlap for each in some])) for name, some in found.items() if some}


def _models(before: Coded, after: Coded, schema: Schema) -> tuple[LearnedScore, ...]:
    """Train models on what is sensitive, or else on a column with few values; on nothing without scikit-learn."""
    if find_spec("sklearn") is None or len(before.names) < 2:
        return ()
    sensitive = [name for name in before.names if schema[name].role is Role.SENSITIVE]
    few = [name for name, size in zip(before.names, before.sizes, strict=True) if 2 <= size <= _CLASSES]
    found = (learning(before, after, name) for name in (sensitive or few[-1:])[:_TARGETS] if _learnable(before, name))
    return tuple(each for each in found if each is not None)


def _learnable(before: Coded, name: str) -> bool:
    place = before.place(name)
    return before.positions[place] is not None or before.sizes[place] <= _MANY
