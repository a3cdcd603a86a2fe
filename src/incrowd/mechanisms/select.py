"""Select: the exponential mechanism, which picks one of a public list of candidates by its score."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from incrowd.core.coins import Coins
from incrowd.core.loss import Pure
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.integers import integers
from incrowd.mechanisms.parameters import counting_number, positive


@dataclass(frozen=True)
class Exponential:
    """Picks candidate r with probability proportional to e^(epsilon · score_r / (2 sensitivity)).

    Promise: epsilon-differential privacy.  One person changes each weight by a factor of at most e^(epsilon/2), up or
    down, and therefore their sum as well; the two may work against each other, so the probability changes by e^epsilon.
    Assumes: one unit of privacy moves every score by at most `sensitivity`; the candidates are public.
    Source: McSherry and Talwar 2007, Theorem 6.

    >>> from incrowd.noise.system import SystemCoins
    >>> Exponential(Fraction(1)).release(np.array([0, 900, 0]), SystemCoins())
    1
    >>> Exponential(Fraction(1)).loss
    Pure(epsilon=Fraction(1, 1))
    """

    epsilon: Fraction
    sensitivity: int = 1
    because: ClassVar[str] = "McSherry and Talwar 2007, Theorem 6"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive(self.epsilon, "epsilon"))
        counting_number(self.sensitivity, "sensitivity")

    @property
    def loss(self) -> Pure:
        """The promise, from the parameters alone."""
        return Pure(self.epsilon)

    @property
    def scale(self) -> Fraction:
        """How far below the best a score must lie to be e times less likely."""
        return 2 * self.sensitivity / self.epsilon

    def release(self, scores: NDArray[Any], coins: Coins) -> int:
        """Return the position of the candidate that was picked.

        Exact rejection: a uniform candidate is accepted with chance e^(−gap / scale), gap being how far its score lies
        below the best; the first one accepted is the answer.  Equal scores are equally likely.
        """
        gaps = gaps_below_best(scores)
        while True:
            tried = coins.below(gaps.size, gaps.size)
            accepted = np.flatnonzero(coins.decay(self.scale, gaps[tried]))
            if accepted.size:
                return int(tried[accepted[0]])


@dataclass(frozen=True)
class MonotoneExponential(Exponential):
    """Picks candidate r with probability proportional to e^(epsilon · score_r / sensitivity): scores move together.

    Promise: epsilon-differential privacy.  If one person moves all scores in the same direction, or not at all, then a
    weight and the sum of weights both grow by a factor between 1 and e^epsilon (or both shrink), and so their quotient
    changes by at most e^epsilon.
    Assumes: as `Exponential`, and that no unit of privacy can raise one score and lower another.  Counts under adding
    or removing people are such scores; under replacing people they are not.
    Source: McSherry and Talwar 2007, Theorem 6, with the proof above.
    """

    because: ClassVar[str] = "McSherry and Talwar 2007, for monotone scores"

    @property
    def scale(self) -> Fraction:
        """How far below the best a score must lie to be e times less likely."""
        return self.sensitivity / self.epsilon


def gaps_below_best(scores: NDArray[Any]) -> NDArray[np.int64]:
    """Return how far each score lies below the best.

    >>> gaps_below_best(np.array([3, 7, 7])).tolist()
    [4, 0, 0]
    """
    whole = integers(scores)
    if whole.ndim != 1 or not whole.size:
        raise InvalidParameter("selection needs a list of at least one candidate.")
    return np.asarray(whole.max() - whole, dtype=np.int64)
