"""Roots: where a function of one number is zero."""

from __future__ import annotations

import math
from collections.abc import Callable


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function goes from above to below 0, to the last digits, by false position and halving in turn.

    Precondition: it is not below 0 at `low` and not above at `high`; otherwise an end comes back.

    >>> round(root(lambda x: 2 - x * x, 0.0, 9.0), 12)
    1.414213562373
    """
    above, below = function(low), function(high)
    for turn in range(200):
        if high - low <= 4e-16 * max(abs(low), abs(high)):
            break
        middle = (low + high) / 2
        if turn % 3 and above != below and math.isfinite(above - below):
            middle = low + (high - low) * above / (above - below)
        value = function(middle)
        if value > 0:
            low, above = middle, value
        else:
            high, below = middle, value
    return (low + high) / 2
