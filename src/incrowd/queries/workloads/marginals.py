"""Marginals: least squares over noisy tables of counts by some of the keys, in closed form for domains of any size.

With Q_T the marginal on a set T of keys with d_i values each, Q_T' Q_T = Σ_{S ⊆ T} (Π_{i ∉ T} d_i) P_S, where P_S is
the projection on what the keys in S tell together and no fewer of them: the Kronecker product of I − J/d for the keys
in S and J/d for the others.  The P_S are orthogonal to each other.  So with precisions v_T the matrix of the normal
equations is Σ_S λ_S P_S with λ_S = Σ_{T ⊇ S} v_T Π_{i ∉ T} d_i, and it is solved subset by subset.  Below, λ_S is
divided by Π_i d_i, which makes it Σ_{T ⊇ S} v_T / Π_{i ∈ T} d_i: no number grows with the domain.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from incrowd.queries.workloads.atoms import Floats, NoiseKind, balanced, equal_shares, whole_shares
from incrowd.queries.workloads.domain import CountQuery

Axes = tuple[int, ...]
"""Some of the keys, by their places, in ascending order."""

MOST_CELLS = 50_000
"""The most cells of a table that is measured."""
_MOST_SETS = 600  # sets of columns weighed against each other
_MOST_PARTS, _MOST_TOLD = 2**15, 2**19
"""The most subsets of keys of all queries that are planned, and of these times the tables that are considered."""
_ROUNDS, _NEARLY = 60, 1.03  # of balancing; of strategies within 3 % of the best the one with fewer tables is taken


def subsets(axes: Axes) -> Iterator[Axes]:
    """Yield all subsets, the empty one first.

    >>> list(subsets((0, 2)))
    [(), (0,), (2,), (0, 2)]
    """
    for size in range(len(axes) + 1):
        yield from itertools.combinations(axes, size)


@dataclass(frozen=True)
class MarginalStrategy:
    """Tables to be measured, their shares of the price as whole numbers, and the total of variances at a price of 1."""

    sets: tuple[Axes, ...]
    shares: tuple[int, ...]
    error: float


@dataclass(frozen=True)
class KeyMarginals:
    """Queries that each count by some of the keys: `sizes` tells how many values a key has."""

    sizes: tuple[int, ...]
    questions: tuple[Axes, ...]

    def cells(self, axes: Iterable[int]) -> int:
        """Return how many groups there are by some keys."""
        return math.prod(self.sizes[axis] for axis in axes)

    def variances(self, sets: Sequence[Axes], precisions: Sequence[float]) -> list[float]:
        """Return the variance of each number of each query; it is the same for all groups of a query.

        >>> KeyMarginals((2, 3), ((0,), (0, 1))).variances([(0, 1)], [1.0])
        [3.0, 1.0]
        """
        strength = self._strengths(sets, precisions)
        results = []
        for axes in self.questions:
            parts = (math.prod(self.sizes[axis] - 1 for axis in part) / strength[part] for part in subsets(axes))
            results.append(sum(parts) / self.cells(axes) ** 2)
        return results

    def answers(
        self, sets: Sequence[Axes], precisions: Sequence[float], noisy: Sequence[NDArray[np.int64]]
    ) -> list[Floats]:
        """Return the least squares answers from noisy tables: for each query an array over all its groups."""
        strength = self._strengths(sets, precisions)
        effects: dict[Axes, Floats] = {}
        for effect in {part for query in self.questions for part in subsets(query)}:
            total = np.zeros([self.sizes[axis] for axis in effect])
            for axes, precision, table in zip(sets, precisions, noisy, strict=True):
                if set(effect) <= set(axes):
                    total += precision / self.cells(set(axes) - set(effect)) * self._own(effect, axes, table)
            effects[effect] = total / strength[effect]
        return [self._put_together(query, effects) for query in self.questions]

    def _own(self, effect: Axes, axes: Axes, table: NDArray[np.int64]) -> Floats:
        """Return what some of the keys of a table tell together: sums over the others, without means over these."""
        shaped = table.reshape([self.sizes[axis] for axis in axes]).astype(np.float64)
        part: Floats = shaped.sum(axis=tuple(place for place, axis in enumerate(axes) if axis not in effect))
        for place in range(part.ndim):
            part = part - part.mean(axis=place, keepdims=True)
        return part

    def _put_together(self, query: Axes, parts: dict[Axes, Floats]) -> Floats:
        total = np.zeros([self.sizes[axis] for axis in query])
        for effect in subsets(query):
            total += parts[effect].reshape([self.sizes[axis] if axis in effect else 1 for axis in query])
        return np.asarray(total / self.cells(query))

    def _strengths(self, sets: Sequence[Axes], precisions: Sequence[float]) -> dict[Axes, float]:
        """Return λ of all that queries need; it is above 0 where the tables tell it."""
        needed = list({part for query in self.questions for part in subsets(query)})
        weights = np.array([precision / self.cells(axes) for axes, precision in zip(sets, precisions, strict=True)])
        return dict(zip(needed, (_within(_masks(needed), _masks(sets)) @ weights).tolist(), strict=True))

    def strategy(self, noise: NoiseKind) -> MarginalStrategy | None:
        """Return the tables and shares with nearly the least total of variances among those considered.

        Considered are all tables that queries ask for, the table by all keys, all tables by the same number of keys,
        and few tables that cover all queries; and of each of these what is left when shares are balanced.  Gaussian
        noise also starts from all tables at once: its total is convex in the shares.  Of those within 3 % of the least,
        the one with the fewest tables is taken.  None where queries by very many keys would take long to plan.
        """
        if sum(2 ** len(query) for query in self.questions) > _MOST_PARTS:
            return None
        strategies = [made for sets in self.candidates(noise) for made in self.weighed(sets, noise)]
        least = min((strategy.error for strategy in strategies), default=0.0)
        near = (strategy for strategy in strategies if strategy.error <= least * _NEARLY)
        return min(near, key=lambda strategy: (len(strategy.sets), strategy.error), default=None)

    def candidates(self, noise: NoiseKind) -> list[tuple[Axes, ...]]:
        """Return the sets of tables that are considered before their shares are balanced."""
        keys = tuple(range(len(self.sizes)))
        candidates = [tuple(dict.fromkeys(self.questions))]
        for size in range(1, len(keys) + 1):
            if math.comb(len(keys), size) <= _MOST_SETS:
                level = tuple(itertools.combinations(keys, size))
                candidates += [level] if self._covers(level) else []
                candidates.append(self._cover(level))
        if noise is NoiseKind.GAUSSIAN:
            candidates.append(self._all)
        small = (sets for sets in dict.fromkeys(candidates) if sets and len(sets) * len(self._times) <= _MOST_TOLD)
        return [sets for sets in small if self._covers(sets) and self._small(sets)]

    @cached_property
    def _all(self) -> tuple[Axes, ...]:
        keys, tables = tuple(range(len(self.sizes))), list[Axes]()
        for size in range(len(keys) + 1):
            if len(tables) + math.comb(len(keys), size) > _MOST_SETS:
                break
            tables += [axes for axes in itertools.combinations(keys, size) if self.cells(axes) <= MOST_CELLS]
        return tuple(tables)

    def weighed(self, sets: tuple[Axes, ...], noise: NoiseKind) -> Iterator[MarginalStrategy]:
        """Yield some tables with equal shares, and with balanced ones."""
        start, (inside, needed) = equal_shares(len(sets)), self._needed(sets)
        yield MarginalStrategy(sets, (1,) * len(sets), float((needed / (inside @ noise.precisions(start))).sum()))
        if len(sets) == 1:
            return

        def gains(precisions: Floats) -> tuple[float, Floats]:
            strength = inside @ precisions
            return float((needed / strength).sum()), np.asarray((needed / strength**2) @ inside)

        shares, _ = balanced(start, noise, gains, _ROUNDS)
        whole = whole_shares(shares)
        left = [place for place, share in enumerate(whole) if share]
        measured, parts = tuple(sets[place] for place in left), tuple(whole[place] for place in left)
        if self._covers(measured):
            precisions = noise.precisions(np.array(parts, dtype=np.float64) / sum(parts))
            yield MarginalStrategy(measured, parts, float((needed / (inside[:, left] @ precisions)).sum()))

    def _needed(self, sets: Sequence[Axes]) -> tuple[Floats, Floats]:
        """Return which table tells what, divided by its cells, and how much of each is in the total of variances."""
        cells = np.array([self.cells(axes) for axes in sets], dtype=np.float64)
        return _within(_masks(self._times), _masks(sets)) / cells, np.array(list(self._times.values()))

    @cached_property
    def _times(self) -> dict[Axes, float]:
        """All that queries need, and how often each is in the total of variances, before it is divided by λ."""
        times: dict[Axes, float] = {}
        for query in self.questions:
            for part in subsets(query):
                degrees = math.prod(self.sizes[axis] - 1 for axis in part)
                times[part] = times.get(part, 0.0) + degrees / self.cells(query)
        return times

    def _covers(self, sets: Sequence[Axes]) -> bool:
        return bool(_within(_masks(self.questions), _masks(sets)).any(axis=1).all())

    def _small(self, sets: Sequence[Axes]) -> bool:
        return all(self.cells(axes) <= MOST_CELLS for axes in sets)

    def _cover(self, level: Sequence[Axes]) -> tuple[Axes, ...]:
        """Return few tables of a level, each of which covers the most queries that no table before it does."""
        covered, tables = _within(_masks(dict.fromkeys(self.questions)), _masks(level)), list[Axes]()
        cells = np.array([self.cells(axes) for axes in level])
        while len(covered):
            most = covered.sum(axis=0)
            if not most.max():
                return ()
            best = int(np.lexsort((cells, -most))[0])
            tables.append(level[best])
            covered = covered[~covered[:, best]]
        return tuple(tables)


def _masks(sets: Iterable[Axes]) -> NDArray[np.int64]:
    """Return sets of keys as whole numbers, a bit for each key."""
    return np.array([sum(1 << axis for axis in axes) for axes in sets], dtype=np.int64)


def _within(parts: NDArray[np.int64], sets: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which of the sets hold all of each part."""
    return np.asarray((parts[:, None] & ~sets[None, :]) == 0)


@dataclass(frozen=True, eq=False)
class KeyTables:
    """Queries about the same rows, grouped by some of the same keys."""

    questions: tuple[CountQuery, ...]
    keys: tuple[str, ...]
    marginals: KeyMarginals


def key_tables(queries: Sequence[CountQuery]) -> KeyTables:
    """Return queries about the same rows as queries about the keys that they share."""
    sizes = {text: size for query in queries for text, size in zip(query.names, query.sizes, strict=True)}
    keys = tuple(sizes)
    axes = tuple(axes_of(query, keys) for query in queries)
    return KeyTables(tuple(queries), keys, KeyMarginals(tuple(sizes.values()), axes))


def axes_of(query: CountQuery, keys: Sequence[str]) -> Axes:
    """Return the places of a query's keys, in ascending order."""
    return tuple(sorted(keys.index(text) for text in query.names))
