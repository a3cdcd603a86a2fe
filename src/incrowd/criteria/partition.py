"""Partition: a table divided into equivalence classes, with all that a criterion reads of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from incrowd.core.counts import Counts
from incrowd.core.keys import Codes
from incrowd.core.recoding import Classes
from incrowd.core.sets import Rows, Sets
from incrowd.criteria.groups import Groups, Histograms, class_starts
from incrowd.errors import InvalidParameter


@dataclass(frozen=True, eq=False)
class Partition:
    """The rows in each class, the sensitive values in each, and the population of each.

    `population` is the number of people of a larger table in each class, `outside` how many of them are in classes
    without a row here.  `sets` hold set-valued columns row by row, with the class of each row.  `histograms` hold a
    sensitive column with a count for every value, where these are few.

    >>> Partition(np.array([5, 2])).rows
    7
    """

    sizes: NDArray[np.int64]
    sensitive: Mapping[str, Groups] = field(default_factory=lambda: MappingProxyType({}))
    population: NDArray[np.int64] | None = None
    outside: int = 0
    sets: Mapping[str, tuple[Sets, Rows]] = field(default_factory=lambda: MappingProxyType({}))
    histograms: Mapping[str, Histograms] = field(default_factory=lambda: MappingProxyType({}))

    def __len__(self) -> int:
        return len(self.sizes)

    @classmethod
    def of(cls, counts: Counts, columns: Sequence[str], sensitive: Sequence[str] = ()) -> Partition:
        """Return the classes over some columns, with the sensitive values in each."""
        whole = counts.marginal([*columns, *sensitive])
        starts = class_starts(whole, len(columns))
        sizes = np.add.reduceat(whole.counts, starts) if len(starts) else np.zeros(0, np.int64)
        return cls(sizes, {name: _with_lifts(counts, columns, name) for name in sensitive})

    def with_population(self, classes: Counts, people: Counts) -> Partition:
        """Return the same classes with their population; `classes` and `people` are counted alike.

        Both are over the same columns with the same declared classes, so that equal tuples have equal keys.
        """
        if classes.layout != people.layout or classes.names != people.names:
            raise InvalidParameter("a table and its population must have the same columns and classes.")
        places = np.minimum(np.searchsorted(people.keys, classes.keys), max(0, len(people) - 1))
        there = people.keys[places] == classes.keys if len(people) else np.zeros(len(classes), np.bool_)
        population = np.where(there, people.counts[places], 0) if len(people) else np.zeros(len(classes), np.int64)
        return replace(self, population=population, outside=people.total - int(population.sum()))

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return int(self.sizes.sum())

    def groups(self, column: str) -> Groups:
        """Return the values of a sensitive column in each class."""
        if column not in self.sensitive:
            raise InvalidParameter(f"{column!r} was not counted as a sensitive column: name it as one.")
        return self.sensitive[column]

    def sets_of(self, column: str) -> tuple[Sets, Rows]:
        """Return the sets of a set-valued column, and the class of each row."""
        if column not in self.sets:
            raise InvalidParameter(f"{column!r} was not read as a set-valued column: declare its separator.")
        return self.sets[column]

    def people(self) -> NDArray[np.int64]:
        """Return the population of each class."""
        if self.population is None:
            raise InvalidParameter("this criterion compares with a population: give the population file.")
        return self.population


def lifts(classes: Classes, met: Codes) -> tuple[Codes, ...]:
    """Return for each level between a sensitive column's values and `*` the class of each value that was met.

    >>> from incrowd.core.hierarchy.tree import tree
    >>> from incrowd.core.recoding import Recoding
    >>> from incrowd.core.schema import Column
    >>> ill = Column("ill", hierarchy=tree({"lungs": ["flu", "cough"], "heart": ["attack"]}))
    >>> [lift.tolist() for lift in lifts(Recoding(ill, 0).classes, np.array([0, 1, 2], np.int32))]
    [[0, 0, 1]]
    """
    recoding = classes.recoding
    rises = [classes.rise(level)[1] for level in range(recoding.level + 1, recoding.column.hierarchy.height)]
    return tuple(np.unique(rise[met], return_inverse=True)[1].astype(np.int32) for rise in rises)


def harmful(groups: Groups, harmless: frozenset[str]) -> NDArray[np.bool_]:
    """Return for each value of a sensitive column whether it is not listed as harmless.

    >>> import pyarrow as pa
    >>> groups = Groups(np.array([0]), np.array([0, 1]), np.array([1, 1]), pa.array(["flu", "healthy"]))
    >>> harmful(groups, frozenset({"healthy"})).tolist()
    [True, False]
    """
    return np.array([label not in harmless for label in groups.labels.to_pylist()], np.bool_)


def _with_lifts(counts: Counts, columns: Sequence[str], sensitive: str) -> Groups:
    column = counts.marginal([sensitive])
    above = lifts(column.classes[0], column.codes()[0])
    return replace(Groups.of(counts, columns, sensitive), lifts=above)
