"""Attackers: three people with a name in mind or a list in hand, and how often they are right.

All three know the quasi-identifiers of the person they look for, and guess among the rows that show them.

Source: El Emam 2013, Guide to the De-Identification of Personal Health Information (prosecutor, journalist, marketer);
Dankar & El Emam 2010, A method for evaluating marketer re-identification risk.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

DEFINITIONS: Mapping[str, str] = MappingProxyType(
    {
        "prosecutor": "knows that the person is in the table: right with 1 over the rows of the table that look alike",
        "journalist": "does not know that: right with 1 over the people in the population who look alike",
        "marketer": "links everybody: the share of rows linked to the right person, on average",
    }
)


@dataclass(frozen=True)
class Risk:
    """How often one attacker is right: about the worst-off row, on average, and the share of rows above a threshold.

    Of no rows, nothing is known: all three are 0.
    """

    highest: float
    average: float
    above: float


def risk(rows: NDArray[np.int64], crowd: NDArray[np.int64], threshold: float) -> Risk:
    """Return the risk of rows in classes of so many, each hidden in a crowd of so many.

    For the prosecutor the crowd is the class itself, for the journalist and the marketer the people of the population
    who look alike.  What the marketer gets is the average.

    >>> classes = np.array([1, 4, 5])
    >>> risk(classes, classes, 0.2)
    Risk(highest=1.0, average=0.3, above=0.5)
    >>> risk(classes, np.array([8, 32, 40]), 0.2)
    Risk(highest=0.125, average=0.0375, above=0.0)
    """
    total = int(rows.sum())
    if not total:
        return Risk(0.0, 0.0, 0.0)
    each = 1.0 / crowd
    return Risk(float(each.max()), float((rows * each).sum() / total), float(rows[each > threshold].sum() / total))
