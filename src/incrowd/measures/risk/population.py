"""Population: how many rows are unique among more people than the table holds, by every model at once.

The models are those of `criteria/uniqueness`: Zayatz, Pitman, the slide negative binomial, and Dankar's rule among
them.  No model comes with an interval of its own that could be trusted; the spread of their answers is shown instead.
"""

from __future__ import annotations

from typing import get_args

import numpy as np
from numpy.typing import NDArray

from incrowd.criteria.uniqueness.criterion import Estimator, estimate_uniques
from incrowd.errors import InvalidParameter
from incrowd.measures.score import Score

_MEANS = "estimated share of rows that are unique among {:,} people, by the model that Dankar's rule takes ({})"


def population_uniqueness(sizes: NDArray[np.int64], people: int) -> Score:
    """Return the share of rows that are unique in a population, by Dankar's rule, within what all models say.

    >>> found = population_uniqueness(np.repeat([1, 2, 3, 4], [50, 30, 15, 5]), 4000)
    >>> found.low <= found.value <= found.high
    True
    """
    if not len(sizes):
        raise InvalidParameter("a table without rows says nothing about a population.")
    found = {name: estimate_uniques(sizes, people, name) for name in get_args(Estimator)}
    value, model = found["dankar"]
    every = [each for each, _ in found.values()]
    means = _MEANS.format(people, model)
    return Score("population uniqueness", value, means, min(every), max(every), "least and greatest of the models")
