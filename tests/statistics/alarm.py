"""How often a test of chance may fail by chance, and tests of laws whose chances to fail are bounds, not estimates."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

FALSE_ALARM = 1e-6
"""Correct code fails one test with this probability at most, and a broken copy escapes with this at most."""

_FEWEST = 20.0

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Events:
    """Events of a law whose outcomes are whole numbers: each common outcome, each tail, and all rare ones together.

    An outcome or a tail is common if at least 20 are expected.
    """

    size: int
    masses: Mapping[int, float]
    common: tuple[int, ...]

    @classmethod
    def of(cls, masses: Mapping[int, float], size: int) -> Events:
        return cls(size, masses, tuple(sorted(o for o, mass in masses.items() if mass * size >= _FEWEST)))

    def chances(self, masses: Mapping[int, float]) -> Numbers:
        """Return the chance of each event under a law."""
        return self._each(np.array(list(masses)), np.array(list(masses.values())))

    def counts(self, draws: NDArray[np.int64]) -> Numbers:
        """Return how often each event is among the draws."""
        return self._each(*np.unique(draws, return_counts=True))

    def _each(self, outcomes: NDArray[np.int64], weights: NDArray[np.generic]) -> Numbers:
        order = np.argsort(outcomes)
        outcomes, above = outcomes[order], np.append(np.cumsum(weights[order][::-1])[::-1], 0.0)
        begins, ends = (np.searchsorted(outcomes, self.common, side) for side in ("left", "right"))
        single = above[begins] - above[ends]
        return np.concatenate([single, above[begins], [above[0] - single.sum()]])

    def p_values(self, counts: Numbers) -> Numbers:
        """Return for each event the chance, twice the smaller side's, of a count as far out as this one.

        Where few are expected, only more of them count, and 20 are taken as expected: the least masses of a law need
        not be listed.
        """
        chances = self.chances(self.masses)
        sure, rare = chances * self.size > self.size - _FEWEST, chances * self.size < _FEWEST
        p = np.where(rare, _FEWEST / self.size, np.clip(chances, 0.0, 1.0))
        more, fewer = binom.sf(counts - 1, self.size, p), binom.cdf(counts, self.size, p)
        found = np.where(rare, more, np.minimum(1.0, 2 * np.minimum(more, fewer)))
        return np.where(sure, 1.0, found)


def p_value(draws: NDArray[np.int64], masses: Mapping[int, float]) -> float:
    """Return a bound on the chance of draws that fit `masses` no better: of all events the least p-value, times all.

    Each event's count is binomial, so this is no approximation: it lies below alpha with probability alpha at most.
    """
    found = Events.of(masses, draws.size)
    values = found.p_values(found.counts(draws))
    return min(1.0, float(values.min()) * values.size)


def escape(law: Mapping[int, float], masses: Mapping[int, float], size: int) -> float:
    """Return a bound on the chance that `size` draws of a law have a p-value of FALSE_ALARM or more under `masses`.

    Whatever escapes has a count between the two quantiles of every event; the event that is least likely to counts.
    """
    found = Events.of(masses, size)
    tested, true = found.chances(masses), np.clip(found.chances(law), 0.0, 1.0)
    seen = (tested * size >= _FEWEST) & (tested * size <= size - _FEWEST)
    alarm = FALSE_ALARM / 2 / tested.size
    low, high = binom.ppf(alarm, size, tested[seen]), binom.isf(alarm, size, tested[seen]) + 1
    return float((binom.cdf(high, size, true[seen]) - binom.cdf(low - 1, size, true[seen])).min())


def binomial_p_value(seen: int, size: int, chance: float) -> float:
    """Return twice the chance of a count at least as far out on its side."""
    return float(min(1.0, 2 * binom.cdf(seen, size, chance), 2 * binom.sf(seen - 1, size, chance)))


def stray(crowds: Iterable[tuple[int, float]], low: int, high: int, k: int = 1) -> float:
    """Return the chance that a sample has fewer rows than `low` or more than `high`.

    Of each crowd every row is in the sample with the crowd's own chance; crowds of fewer than k there are left out.
    """
    law = np.ones(1)
    for rows, chance in crowds:
        single = binom.pmf(np.arange(rows + 1), rows, chance)
        single[0] += single[1:k].sum()
        single[1:k] = 0.0
        law = np.convolve(law, single)
    return float(law[:low].sum() + law[high + 1 :].sum())


def continuous_p_value(draws: Numbers, cdf: Callable[[Numbers], Numbers], off: float = 0.0) -> float:
    """Return a bound on the chance of draws that are as far from a law (Dvoretzky, Kiefer, Wolfowitz; Massart 1990).

    `off` is how far the stated law may be from the true one, as the largest difference of distribution functions.
    """
    at, steps = cdf(np.sort(draws)), np.arange(draws.size + 1) / draws.size
    distance = max(float((steps[1:] - at).max()), float((at - steps[:-1]).max())) - off
    return 2 * math.exp(-2 * draws.size * max(0.0, distance) ** 2)
