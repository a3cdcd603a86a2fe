"""Noisy max: which candidate has the highest score, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from incrowd.core.coins import Coins
from incrowd.core.loss import Pure
from incrowd.mechanisms.parameters import counting_number, positive
from incrowd.mechanisms.select import gaps_below_best


@dataclass(frozen=True)
class NoisyMax:
    """Reports the candidate whose score is highest after exponential noise of mean 2 · sensitivity / epsilon on each.

    Promise: epsilon-differential privacy for the position of the winner.  Its score, noisy or not, is not free: release
    it with fresh noise and pay for it (`MostCommon`).
    Assumes: one unit of privacy moves every score by at most `sensitivity`; the candidates are public.
    Source: McKenna and Sheldon 2020 (permute-and-flip); Ding, Kifer, Saghaian, Steinke, Wang, Xiao and Zhang 2021.

    Noise is never drawn.  An exponential noise lifts a score that lies `gap` below the best one above it with chance
    e^(−gap/scale), and by how much is again exponential whatever the gap.  The winner is above the best score,
    and those who are there are alike: so toss these coins and draw one of the heads.  This is exact, and ties
    between equal scores are settled by fair chance.

    Proof of the promise.  Fix the noise of all candidates but r.  Then r wins if its noise exceeds some number T.  One
    person moves T by at most 2 · sensitivity (its own score down and a rival up), and P[noise > T + s] ≥ e^(−s/scale)
    P[noise > T] for exponential noise of mean `scale` and s ≥ 0.  ∎

    >>> from incrowd.noise.system import SystemCoins
    >>> NoisyMax(Fraction(1)).release(np.array([0, 900, 0]), SystemCoins())
    1
    """

    epsilon: Fraction
    sensitivity: int = 1
    because: ClassVar[str] = "McKenna and Sheldon 2020, permute-and-flip"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive(self.epsilon, "epsilon"))
        counting_number(self.sensitivity, "sensitivity")

    @property
    def loss(self) -> Pure:
        """The promise, from the parameters alone."""
        return Pure(self.epsilon)

    @property
    def scale(self) -> Fraction:
        """The mean of the noise."""
        return 2 * self.sensitivity / self.epsilon

    def release(self, scores: NDArray[Any], coins: Coins) -> int:
        """Return the position of the winner."""
        heads = np.flatnonzero(coins.decay(self.scale, gaps_below_best(scores)))
        return int(heads[coins.below(heads.size, 1)[0]])


@dataclass(frozen=True)
class MonotoneNoisyMax(NoisyMax):
    """As `NoisyMax`, with half the noise, for scores that move together.

    Promise: epsilon-differential privacy for the position of the winner.
    Assumes: as `NoisyMax`, and that no unit of privacy can raise one score and lower another.  Counts under adding or
    removing people are such scores; under replacing people they are not.
    Source: as `NoisyMax`; in its proof T now moves by at most `sensitivity`, since r and its rivals move the same way.
    """

    because: ClassVar[str] = "McKenna and Sheldon 2020, permute-and-flip, for monotone scores"

    @property
    def scale(self) -> Fraction:
        """The mean of the noise."""
        return self.sensitivity / self.epsilon
