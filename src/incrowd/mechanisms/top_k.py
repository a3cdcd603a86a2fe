"""Top k: the best candidates, one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from incrowd.core.coins import Coins
from incrowd.core.loss import Loss, Sequence
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.add_noise import AddLaplace, repeated
from incrowd.mechanisms.integers import integers
from incrowd.mechanisms.noisy_max import MonotoneNoisyMax, NoisyMax
from incrowd.mechanisms.parameters import counting_number, positive
from incrowd.mechanisms.select import Exponential


@dataclass(frozen=True)
class TopK:
    """Picks a best candidate, sets it aside, and picks again, k times in all.

    Promise: k times the loss of `pick`.  Given the earlier picks, which are public, each round is `pick` on the scores
    of a public list of candidates: losses on the same rows add up, also if later rounds depend on earlier answers.
    Assumes: what `pick` assumes.
    Source: McSherry and Talwar 2007 for a pick; Dwork, Rothblum and Vadhan 2010 for adaptive composition.

    >>> from incrowd.noise.system import SystemCoins
    >>> TopK(2, MonotoneNoisyMax(Fraction(1))).release(np.array([1000, 0, 5000]), SystemCoins()).tolist()
    [2, 0]
    """

    k: int
    pick: NoisyMax | Exponential
    because: ClassVar[str] = "k rounds of selection, each on the candidates left; losses add up"

    def __post_init__(self) -> None:
        counting_number(self.k, "k")

    @property
    def loss(self) -> Loss:
        """The promise, from the parameters alone."""
        return repeated(self.pick.loss, self.k)

    def release(self, scores: NDArray[Any], coins: Coins) -> NDArray[np.int64]:
        """Return the positions of the picked candidates, in the order in which they were picked."""
        if self.k > scores.size:
            raise InvalidParameter(f"{self.k} of {scores.size} candidates were asked for; ask for at most all of them.")
        left = np.arange(scores.size)
        picked = np.empty(self.k, dtype=np.int64)
        for place in range(self.k):
            choice = self.pick.release(scores[left], coins)
            picked[place] = left[choice]
            left = np.delete(left, choice)
        return picked


@dataclass(frozen=True)
class MostCommon:
    """Names the k most common of a public list of categories, with a fresh noisy count of each.

    Promise: Pure(choosing / k) k times, and integer Laplace noise of scale k / counting k times: epsilon = choosing +
    counting, in however many categories a person counts.  The counts need noise of their own: had they the noise that
    chose the winners, every category that lost would say something too, and each would cost.
    Assumes: one unit of privacy moves every count by at most 1 and is added or removed, so that counts are monotone.
    Where a person counts in one category only, do not use this: `AddLaplace` on all counts costs its epsilon once,
    and the most common categories can then be read off the noisy counts for nothing.
    Source: `MonotoneNoisyMax`, `TopK`, `AddLaplace`.

    >>> from incrowd.noise.system import SystemCoins
    >>> mechanism = MostCommon(1, choosing=Fraction(1, 2), counting=Fraction(1, 2))
    >>> mechanism.loss.parts
    (Pure(epsilon=Fraction(1, 2)), Laplace(scale=Fraction(2, 1), sensitivity=1))
    >>> mechanism.release(np.array([3, 4000]), SystemCoins())[0].tolist()
    [1]
    """

    k: int
    choosing: Fraction
    counting: Fraction
    because: ClassVar[str] = "k rounds of selection on monotone counts, then fresh noise; losses add up"

    def __post_init__(self) -> None:
        counting_number(self.k, "k")
        object.__setattr__(self, "choosing", positive(self.choosing, "choosing"))
        object.__setattr__(self, "counting", positive(self.counting, "counting"))

    @property
    def loss(self) -> Loss:
        """The promise, from the parameters alone."""
        return Sequence((self._top.loss, self._noise.loss))

    def release(self, counts: NDArray[Any], coins: Coins) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the positions of the chosen categories, in the order chosen, and their noisy counts."""
        whole = integers(counts)
        chosen = self._top.release(whole, coins)
        return chosen, self._noise.release(whole[chosen], coins)

    @property
    def _top(self) -> TopK:
        return TopK(self.k, MonotoneNoisyMax(self.choosing / self.k))

    @property
    def _noise(self) -> AddLaplace:
        return AddLaplace.costing(self.counting, groups=self.k)
