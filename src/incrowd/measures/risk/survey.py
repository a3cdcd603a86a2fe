"""Survey: how many records of a weighted sample are expected to be linked rightly, without knowing the population."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from incrowd.core.keys import Keys
from incrowd.criteria.individual_risk import individual_risk
from incrowd.errors import InvalidParameter
from incrowd.measures.score import Score, around

Numbers = NDArray[np.float64]
_MEANS = "expected number of rows that are linked rightly, if everybody is linked at random among those who look alike"


def class_weights(keys: Keys, weights: NDArray[np.float64]) -> tuple[NDArray[np.int64], Numbers]:
    """Return for each class its rows and the sum of their weights, given for each row its class and its weight.

    >>> class_weights(np.array([3, 5, 3]), np.array([1.0, 2.0, 4.0]))
    (array([2, 1]), array([5., 2.]))
    """
    if not (np.isfinite(weights) & (weights > 0)).all():
        raise InvalidParameter(
            "some row has a weight of 0, none, or one that is no number: a weight is how many people a row stands for."
        )
    _, places, rows = np.unique(keys, return_inverse=True, return_counts=True)
    return rows.astype(np.int64), np.bincount(places, weights).astype(np.float64)


def expected_links(rows: NDArray[np.int64], weights: Numbers) -> Score:
    """Return how many rows are expected to be linked rightly, over the whole sample.

    >>> round(expected_links(np.array([1, 2]), np.array([10.0, 20.0])).value, 6)
    0.421211
    """
    risk = individual_risk(rows, weights)
    error = float(np.sqrt((rows * risk * (1.0 - risk)).sum()))
    return around("expected links", float((rows * risk).sum()), error, _MEANS)
