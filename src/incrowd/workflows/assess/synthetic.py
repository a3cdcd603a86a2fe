"""Synthetic: how good rows drawn from a model are, column by column and pair by pair, beside the rows it was made from.

Both are taken in the classes of the model: what a class spreads over its numbers is no error of the model's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.core.cells import Cells
from incrowd.core.recoding import Classes
from incrowd.core.table import Engine, Rows
from incrowd.measures.coded import Coded
from incrowd.measures.utility.distances import TableDistance, table_distances
from incrowd.methods.labels import text_of
from incrowd.methods.outcomes.outcome import ReleasedTuples
from incrowd.methods.synthesis.marginals.synthetic_model import drawn_number
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.registry import MODELS


@dataclass(frozen=True)
class SyntheticQuality:
    """The total variation of each column and of each pair of columns, beside the original rows."""

    columns: tuple[TableDistance, ...]
    pairs: tuple[TableDistance, ...]

    @property
    def mean(self) -> float:
        """The mean error of pairs."""
        return float(np.mean([each.variation for each in self.pairs])) if self.pairs else 0.0

    @property
    def worst(self) -> tuple[TableDistance, ...]:
        """The pairs, those with the largest error first."""
        return tuple(sorted(self.pairs, key=lambda each: -each.variation))


def synthetic_quality(shown: ReleasedTuples, original: Rows, policy: Policy, engine: Engine) -> SyntheticQuality | None:
    """Hold rows that a model made against the original; None where the policy makes no model, or nothing was drawn."""
    if policy.plan.method not in MODELS or shown.rows is None or not shown.rows.sum():
        return None
    method: Any = policy.method
    classes: tuple[Classes, ...] = method.classes(policy.schema)
    names, sizes = tuple(each.recoding.column.name for each in classes), tuple(map(len, classes))
    if set(names) != set(shown.labels.column_names):
        return None
    counts = engine.count(original, Cells(tuple(each.recoding for each in classes)))
    nowhere = (None,) * len(names)
    codes = np.array(counts.codes(), np.int32).reshape(len(names), -1)
    before = Coded(names, codes, counts.counts.astype(float), sizes, nowhere)
    drawn = np.stack([_codes(each, shown.labels[name]) for name, each in zip(names, classes, strict=True)])
    known = (drawn >= 0).all(axis=0)
    after = Coded(names, drawn[:, known], shown.rows[known].astype(float), sizes, nowhere)
    return SyntheticQuality(table_distances(before, after, 1), table_distances(before, after, 2))


def _codes(classes: Classes, column: pa.ChunkedArray) -> NDArray[np.int32]:
    """Return the class of each released value: a number is read, a label is looked up; −1 for what is neither."""
    values = pc.cast(column.combine_chunks(), pa.string())
    if drawn_number(classes):
        return np.asarray(classes.recoding.codes_of(values)[:-1], np.int32)
    places = pc.index_in(values, value_set=text_of(classes.values()))
    return np.asarray(pc.fill_null(places, -1), np.int32)
