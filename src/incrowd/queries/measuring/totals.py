"""Totals: noisy statistics of several groups, added up; what was released is added, so it costs nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incrowd.queries.measuring.groups import Names


@dataclass(frozen=True)
class GroupTotals:
    """Rows of an answer: the values of their keys, their noisy statistics, and how many groups each is made of.

    A key is None where the row is of all its values; `over` tells so, since a key can be None in a group, too.
    """

    names: tuple[Names, ...]
    vectors: NDArray[np.int64]
    groups: NDArray[np.int64]
    over: NDArray[np.bool_]

    @property
    def several(self) -> NDArray[np.bool_]:
        """Which rows are sums of several groups, of whose noise no interval is known."""
        return np.asarray(self.groups > 1)


def total_groups(
    names: tuple[Names, ...], vectors: NDArray[np.int64], sets: tuple[tuple[int, ...], ...], keys: int
) -> GroupTotals:
    """Return for each set of keys the groups that are equal in them, added up.

    >>> total_groups((("a",), ("b",)), np.array([[1], [2]]), ((0,), ()), 1).vectors.tolist()
    [[1], [2], [3]]
    """
    told: list[Names] = []
    sums: list[NDArray[np.int64]] = []
    many: list[NDArray[np.int64]] = []
    over: list[list[bool]] = []
    for kept in sets:
        places: dict[Names, int] = {}
        at = np.array([places.setdefault(tuple(name[key] for key in kept), len(places)) for name in names], np.int64)
        added = np.zeros((len(places), vectors.shape[1]), dtype=np.int64)
        np.add.at(added, at, vectors)
        sums.append(added)
        many.append(np.bincount(at, minlength=len(places)).astype(np.int64))
        for group in places:
            known = dict(zip(kept, group, strict=True))
            told.append(tuple(known.get(key) for key in range(keys)))
            over.append([key not in kept for key in range(keys)])
    return GroupTotals(tuple(told), np.concatenate(sums), np.concatenate(many), np.array(over, dtype=np.bool_))
