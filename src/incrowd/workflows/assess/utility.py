"""Utility: what a release preserves of the data: statistics, models, and the quality of synthetic rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.core.cells import Cells
from incrowd.core.recoding import Classes
from incrowd.core.schema import Role, Schema
from incrowd.core.table import Engine, Rows
from incrowd.measures.coded import Coded
from incrowd.measures.score import Score
from incrowd.measures.utility.distances import (
    Dependency,
    MarginalDistance,
    TableDistance,
    dependencies,
    marginal_distance,
    table_distances,
)
from incrowd.measures.utility.learning import LearnedScore, learning
from incrowd.measures.utility.regressions import Propensity, coefficients, propensity
from incrowd.measures.utility.workload import workload_error
from incrowd.methods.shared.columns import text_of
from incrowd.methods.shared.outcome import ReleasedTuples
from incrowd.methods.synthesis.marginals.detail import drawn_inside, drawn_number
from incrowd.workflows.assess.comparison import Original, ShownTable
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.registry import MODELS

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
    """Compare a release, each label spread evenly over its values, with the original."""
    before = original.coded
    after = [table.values(before) for table in tables]
    marginals = tuple(distance for table in tables for distance in _marginals(table, before))
    related = dependencies(before, [table for table in after if table.rows and len(table.names) > 1])
    if len(after) != 1 or not after[0].rows or not after[0].names:
        return Utility(marginals, related, None, {}, (), None)
    released = after[0]
    columns = before.only([before.place(name) for name in released.names])
    models, workload = _models(columns, released, schema), workload_error(columns, released)
    overlaps = _overlaps(columns, released)
    return Utility(marginals, related, propensity(columns, released), overlaps, models, workload)


def _marginals(table: ShownTable, before: Coded) -> list[MarginalDistance]:
    distances = []
    for place in table.read:
        label_map, name = table.label_maps[place], table.names[place]
        column = before.place(name)
        if label_map is None or not table.total:
            continue
        rows = np.bincount(table.codes[place], table.rows, len(label_map.lengths)).astype(float)
        distances.append(
            marginal_distance(name, before.marginal(column), label_map.spread(rows), before.positions[column])
        )
    return distances


def _overlaps(before: Coded, after: Coded) -> dict[str, float]:
    ordered = [name for name, positions in zip(before.names, before.positions, strict=True) if positions is not None]
    by_target = {name: coefficients(before, after, name) for name in ordered[:_TARGETS]}
    return {
        name: float(np.mean([coefficient.overlap for coefficient in estimates]))
        for name, estimates in by_target.items()
        if estimates
    }


def _models(before: Coded, after: Coded, schema: Schema) -> tuple[LearnedScore, ...]:
    """Train models of the sensitive columns, or of one with few values; none without scikit-learn."""
    if find_spec("sklearn") is None or len(before.names) < 2:
        return ()
    sensitive = [name for name in before.names if schema[name].role is Role.SENSITIVE]
    few = [name for name, size in zip(before.names, before.sizes, strict=True) if 2 <= size <= _CLASSES]
    scores = (learning(before, after, name) for name in (sensitive or few[-1:])[:_TARGETS] if _learnable(before, name))
    return tuple(score for score in scores if score is not None)


def _learnable(before: Coded, name: str) -> bool:
    place = before.place(name)
    return before.positions[place] is not None or before.sizes[place] <= _MANY


@dataclass(frozen=True)
class SyntheticQuality:
    """The total variation of each column and of each pair of columns from the original rows."""

    columns: tuple[TableDistance, ...]
    pairs: tuple[TableDistance, ...]

    @property
    def mean(self) -> float:
        """The mean error of pairs."""
        return float(np.mean([pair.variation for pair in self.pairs])) if self.pairs else 0.0

    @property
    def worst(self) -> tuple[TableDistance, ...]:
        """The pairs, those with the largest error first."""
        return tuple(sorted(self.pairs, key=lambda pair: -pair.variation))


def synthetic_quality(
    tuples: ReleasedTuples, original: Rows, policy: Policy, engine: Engine
) -> SyntheticQuality | None:
    """Compare synthetic rows with the original in the classes of the model; None without a model or rows.

    In classes, because the spread of a class over its numbers is not an error of the model.
    """
    if policy.plan.method not in MODELS or tuples.rows is None or not tuples.rows.sum():
        return None
    method: Any = policy.method
    classes: tuple[Classes, ...] = method.classes(policy.schema)
    names, sizes = tuple(values.recoding.column.name for values in classes), tuple(map(len, classes))
    if set(names) != set(tuples.labels.column_names):
        return None
    counts = engine.count(original, Cells(tuple(values.recoding for values in classes)))
    nowhere = (None,) * len(names)
    codes = np.array(counts.codes(), np.int32).reshape(len(names), -1)
    before = Coded(names, codes, counts.counts.astype(float), sizes, nowhere)
    sampled = np.stack([_codes(values, tuples.labels[name]) for name, values in zip(names, classes, strict=True)])
    labeled = (sampled >= 0).all(axis=0)
    after = Coded(names, sampled[:, labeled], tuples.rows[labeled].astype(float), sizes, nowhere)
    return SyntheticQuality(table_distances(before, after, 1), table_distances(before, after, 2))


def _codes(classes: Classes, column: pa.ChunkedArray) -> NDArray[np.int32]:
    """Return the class of each released value, a number or a label; −1 for others."""
    values = pc.cast(column.combine_chunks(), pa.string())
    inside = np.asarray(classes.recoding.codes_of(values)[:-1], np.int32) if drawn_inside(classes) else None
    if inside is not None and drawn_number(classes):
        return inside
    places = np.asarray(pc.fill_null(pc.index_in(values, value_set=text_of(classes.values())), -1), np.int32)
    return places if inside is None else np.where(places < 0, inside, places)
