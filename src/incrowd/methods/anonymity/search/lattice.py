"""Lattice: every choice of one rung for each column, over the tuples that were counted."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.counts import Counts
from incrowd.core.keys import Codes
from incrowd.criteria.groups import class_starts
from incrowd.criteria.partition import lifts
from incrowd.errors import InvalidParameter
from incrowd.quality.ladder import Ladder, occurring
from incrowd.quality.tuples import Spread, Tuples

Node = tuple[int, ...]
"""One rung for each column."""


@dataclass(frozen=True, eq=False)
class SensitiveLabels:
    """The values of a sensitive column that occur, in order: their labels, their classes at levels above, rows."""

    labels: pa.Array
    lifts: tuple[Codes, ...]
    totals: NDArray[np.int64]


@dataclass(frozen=True)
class LevelLimits:
    """The lowest and the highest level that each column may have; where nothing is said, all it has.

    >>> LevelLimits({"age": 1}, {"age": 3}).of("age"), LevelLimits().of("age")
    ((1, 3), (0, None))
    """

    lowest: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    highest: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))

    def of(self, name: str) -> tuple[int, int | None]:
        """Return the limits of a column."""
        return self.lowest.get(name, 0), self.highest.get(name)


EVERYTHING = LevelLimits()
"""No limits."""


@dataclass(frozen=True, eq=False)
class Lattice:
    """The ladders of the columns, the classes at their lowest rungs, and the numbers that tables give to codes.

    A node is coarser than another if no column is on a lower rung.
    """

    ladders: tuple[Ladder, ...]
    base: Tuples
    tables: tuple[tuple[Codes, ...], ...]
    sizes: tuple[tuple[int, ...], ...]
    sensitive: Mapping[str, SensitiveLabels]

    @classmethod
    def of(
        cls, counts: Counts, quasi: Sequence[str], sensitive: Sequence[str] = (), limits: LevelLimits = EVERYTHING
    ) -> Lattice:
        """Return the lattice over the quasi-identifiers of a table that was counted at its finest levels."""
        both = [name for name in quasi if name in sensitive]
        if both or not quasi:
            raise InvalidParameter(
                f"{both[0]!r} is named both as generalized and as sensitive: name it once."
                if both
                else "a search needs at least one column to generalize."
            )
        tuples = counts.marginal(quasi)
        ladders = tuple(Ladder.of(column, *limits.of(name)) for name, column in zip(quasi, tuples.classes, strict=True))
        spreads = {name: _spread(counts.marginal([*quasi, name])) for name in sensitive}
        base = Tuples(
            np.stack(tuples.codes()), tuples.counts, None, {name: spread for name, (spread, _) in spreads.items()}
        )
        return cls._over(ladders, base, {name: found for name, (_, found) in spreads.items()})

    def with_population(self, population: Counts) -> Lattice:
        """Return the lattice of a table that was drawn from a population, counted with the same declarations."""
        names = [ladder.name for ladder in self.ladders]
        people = population.marginal(names)
        for ladder, column in zip(self.ladders, people.classes, strict=True):
            if column.recoding.classes is None or len(column) != len(ladder.rises[0]):
                raise InvalidParameter(
                    f"the classes of {ladder.name!r} must be declared, and the same for the table and its population."
                )
        keys = people.layout.pack(list(self.base.codes))
        merged, places = np.unique(np.concatenate([keys, people.keys]), return_inverse=True)
        here, there = places[: len(keys)], places[len(keys) :]
        order = np.concatenate([here, np.setdiff1d(there, here)])
        rank = np.empty(len(merged), np.int64)
        rank[order] = np.arange(len(order))
        sizes, counts = np.zeros(len(merged), np.int64), np.zeros(len(merged), np.int64)
        sizes[: len(keys)] = self.base.sizes
        counts[rank[there]] = people.counts
        codes = np.stack(people.layout.unpack(merged[order]))
        return self._over(self.ladders, Tuples(codes, sizes, counts, self.base.spreads), self.sensitive)

    @classmethod
    def _over(cls, ladders: tuple[Ladder, ...], base: Tuples, sensitive: Mapping[str, SensitiveLabels]) -> Lattice:
        tables = occurring(ladders, list(base.codes))
        sizes = tuple(tuple(int(table.max(initial=0)) + 1 for table in column) for column in tables)
        return cls(ladders, base, tables, sizes, sensitive)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(ladder.name for ladder in self.ladders)

    @cached_property
    def rows(self) -> int:
        """How many rows were counted."""
        return self.base.rows

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return math.prod(len(ladder) for ladder in self.ladders)

    @property
    def bottom(self) -> Node:
        """The finest node."""
        return (0,) * len(self.ladders)

    @property
    def top(self) -> Node:
        """The coarsest node."""
        return tuple(len(ladder) - 1 for ladder in self.ladders)

    def levels(self, node: Node) -> dict[str, int]:
        """Return the level of each column at a node."""
        return {ladder.name: ladder.levels[rung] for ladder, rung in zip(self.ladders, node, strict=True)}


def _spread(counts: Counts) -> tuple[Spread, SensitiveLabels]:
    """Return how the last column falls into the tuples of the others, and its values."""
    starts = class_starts(counts, len(counts.names) - 1)
    owners = np.zeros(len(counts), np.int32)
    owners[starts[1:]] = 1
    codes = counts.codes()[-1]
    met, values = np.unique(codes, return_inverse=True)
    classes = counts.classes[-1]
    totals = np.bincount(values, counts.counts, len(met)).astype(np.int64)
    found = SensitiveLabels(classes.labels().take(pa.array(met)), lifts(classes, met.astype(np.int32)), totals)
    return Spread(np.cumsum(owners, dtype=np.int32), values.astype(np.int32), counts.counts), found
