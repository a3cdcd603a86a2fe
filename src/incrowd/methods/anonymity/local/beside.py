"""Beside: a criterion on the classes of some rows that looks at all rows, those elsewhere being one more class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from incrowd.criteria.criterion import Criterion, Mask, Monotone
from incrowd.criteria.groups import Groups
from incrowd.criteria.partition import Partition


@dataclass(frozen=True, eq=False)
class Beside(Criterion):
    """A criterion that compares classes of a part of a table with the whole table.

    What the whole table holds beyond the part is added as one more class, so that all classes together are the whole
    table, and is then forgotten.  The whole stays the same from node to node, so what is known of the criterion when
    classes merge stays true.

    >>> import pyarrow as pa
    >>> from incrowd.criteria.closeness import EqualCloseness
    >>> names = pa.array(["flu", "gout"])
    >>> whole = Groups(np.array([0]), np.array([0, 1], np.int32), np.array([4, 4]), names)
    >>> part = Groups(np.array([0]), np.array([0], np.int32), np.array([2]), names.slice(0, 1))
    >>> alone = Partition(np.array([2]), {"ill": part})
    >>> close = EqualCloseness("ill", "0.4")
    >>> close.met(alone).tolist(), Beside(close, Partition(np.array([8]), {"ill": whole})).met(alone).tolist()
    ([True], [False])
    """

    inner: Criterion
    table: Partition

    @property
    def monotone(self) -> Monotone:
        """What follows for coarser nodes: the same."""
        return self.inner.monotone

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The sensitive columns it looks at."""
        return self.inner.sensitive

    def kept(self, partition: Partition, among: Mask) -> Mask:
        """Return which classes of the part, among some, may be released."""
        elsewhere = self.table.rows - partition.rows
        if not elsewhere:
            return self.inner.kept(partition, among)
        both = {name: completed(partition.sensitive[name], self.table.sensitive[name]) for name in self.sensitive}
        everyone = Partition(np.append(partition.sizes, elsewhere), both)
        return self.inner.kept(everyone, np.append(among, False))[:-1]


def completed(part: Groups, whole: Groups) -> Groups:
    """Return the groups of a part of a table and one more: all rows of the whole table that are in none of them.

    >>> import pyarrow as pa
    >>> names = pa.array(["flu", "gout"])
    >>> whole = Groups(np.array([0]), np.array([0, 1], np.int32), np.array([4, 4]), names)
    >>> part = Groups(np.array([0]), np.array([0], np.int32), np.array([3]), names.slice(1))
    >>> both = completed(part, whole)
    >>> both.starts.tolist(), both.values.tolist(), both.counts.tolist()
    ([0, 1], [1, 0, 1], [3, 4, 1])
    """
    places = pc.index_in(part.labels, value_set=whole.labels).to_numpy(zero_copy_only=False).astype(np.int32)
    values = places[part.values]
    left = whole.totals - np.bincount(values, part.counts, len(whole.labels)).astype(np.int64)
    there = np.flatnonzero(left)
    return Groups(
        np.append(part.starts, len(part.counts)),
        np.append(values, there).astype(np.int32),
        np.append(part.counts, left[there]),
        whole.labels,
        whole.lifts,
    )
