"""Coins that every engine agrees on: each kind of draw has a stream of its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from incrowd.core.coins import Sample
from tests.coins import Pairs, SeededCoins


@dataclass(frozen=True)
class AgreedCoins:
    """The real samplers on reproducible words, where one kind of draw does not shift another.

    How many words an engine needs to choose among a person's rows is its own affair; which rows are in a sample, by
    position in the one order of the source, and what noise is drawn must not depend on it.
    """

    seed: int
    _streams: dict[str, SeededCoins] = field(default_factory=dict, repr=False)

    def bernoulli(self, probability: Fraction, size: int) -> NDArray[np.bool_]:
        return self._of("bernoulli").bernoulli(probability, size)

    def below(self, bound: int, size: int) -> NDArray[np.int64]:
        return self._of("below").below(bound, size)

    def laplace(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        return self._of("laplace").laplace(scale, size)

    def gaussian(self, scale: Fraction, size: int) -> NDArray[np.int64]:
        return self._of("gaussian").gaussian(scale, size)

    def cube(self, widths: tuple[int, ...], fine: int, scale: Fraction, size: int) -> NDArray[np.int64]:
        return self._of("cube").cube(widths, fine, scale, size)

    def decay(self, scale: Fraction, steps: NDArray[np.int64]) -> NDArray[np.bool_]:
        return self._of("decay").decay(scale, steps)

    def outliers(self, scale: Fraction, least: int, size: int) -> Pairs:
        return self._of("outliers").outliers(scale, least, size)

    def sample(self, rate: Fraction) -> Sample:
        return self._of("sample").sample(rate)

    def _of(self, kind: str) -> SeededCoins:
        return self._streams.setdefault(kind, SeededCoins(self.seed + sum(kind.encode())))


@dataclass(frozen=True)
class CoinsApart(AgreedCoins):
    """Draws below different bounds do not shift each other either: keys of engines have bounds that no choice has."""

    def below(self, bound: int, size: int) -> NDArray[np.int64]:
        return self._of(f"below {bound}").below(bound, size)
