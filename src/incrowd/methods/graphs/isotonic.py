"""Isotonic inference: the monotone sequence of whole numbers that lies nearest to noisy degrees in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from incrowd.core.graph import Degrees


def fitted(noisy: NDArray[np.int64]) -> Degrees:
    """Return the sequence of whole numbers that does not fall and lies nearest to noisy degrees, within what can be.

    Source: Hay, Li, Miklau & Jensen 2009.

    >>> fitted(np.array([1, 0, 3, 2])).tolist()
    [0, 0, 2, 2]
    """
    from scipy.optimize import isotonic_regression

    if not len(noisy):
        return noisy
    near = isotonic_regression(noisy.astype(np.float64)).x
    return np.asarray(np.clip(np.rint(near), 0, len(noisy) - 1), np.int64)
