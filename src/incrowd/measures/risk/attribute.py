"""Attribute: what classes of rows that look alike tell about a sensitive column.

l is the fewest different values in a class, t the greatest distance of a class from the whole table (half the sum of
|p − q|), *homogeneous* the share of rows in classes with one value: whoever is known to be there is known to have it.
k-map is the smallest crowd of the population behind a class of the release.  How often a *model* trained on the release
is right is in `measures/utility/learning.py`: the same number is use to one and gain to the other.

Source: Machanavajjhala et al. 2006; Li, Li & Venkatasubramanian 2007; Sweeney 2001 for k-map.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.keys import Layout, grouped
from incrowd.criteria.distances import equal
from incrowd.criteria.groups import Groups
from incrowd.measures.coded import Coded


@dataclass(frozen=True)
class Homogeneity:
    """What classes tell of a sensitive column: l and t as they are found, and the share of rows given away."""

    column: str
    l: int  # noqa: E741 - the letter of the paper
    t: float
    homogeneous: float


def homogeneity(table: Coded, quasi: tuple[int, ...], sensitive: int) -> Homogeneity | None:
    """Return l, t and the share of rows in classes with one sensitive value; None without rows.

    >>> rows = np.array([[0, 0, 1, 1], [0, 1, 1, 1]])
    >>> homogeneity(Coded(("sex", "ill"), rows, np.ones(4), (2, 2), (None, None)), (0,), 1)
    Homogeneity(column='ill', l=1, t=0.25, homogeneous=0.5)
    """
    groups = groups_of(table, quasi, sensitive)
    if not len(groups.counts):
        return None
    alike = groups.sizes[groups.lengths == 1].sum() / groups.sizes.sum()
    return Homogeneity(table.names[sensitive], int(groups.lengths.min()), float(equal(groups).max()), float(alike))


def groups_of(table: Coded, quasi: tuple[int, ...], sensitive: int) -> Groups:
    """Return the classes of a table over some columns, and how the values of another fall into them."""
    layout = Layout((*(table.sizes[place] for place in quasi), table.sizes[sensitive]))
    keys = layout.pack([table.codes[place] for place in (*quasi, sensitive)])
    keys, counts = grouped(keys, np.rint(table.weights).astype(np.int64))
    keys, counts = keys[counts > 0], counts[counts > 0]
    codes = layout.unpack(keys)
    met, values = np.unique(codes[-1], return_inverse=True)
    new: NDArray[np.bool_] = np.zeros(len(keys), np.bool_)
    new[:1] = True
    for column in codes[:-1]:
        new[1:] |= column[1:] != column[:-1]
    return Groups(np.flatnonzero(new), values.astype(np.int32), counts, pa.nulls(len(met)))
