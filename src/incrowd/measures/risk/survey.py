"""Survey: how many records of a weighted sample are expected to be linked rightly, without knowing the population."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from incrowd.criteria.individual_risk import individual_risk
from incrowd.measures.score import Score, around

Numbers = NDArray[np.float64]
_MEANS = "expected number of rows that are linked rightly, if everybody is linked at random among those who look alike"


def expected_links(rows: NDArray[np.int64], weights: Numbers) -> Score:
    """Return how many rows are expected to be linked rightly, over the whole sample.

    >>> round(expected_links(np.array([1, 2]), np.array([10.0, 20.0])).value, 6)
    0.421211
    """
    risk = individual_risk(rows, weights)
    error = float(np.sqrt((rows * risk * (1.0 - risk)).sum()))
    return around("expected links", float((rows * risk).sum()), error, _MEANS)
