"""Selection: one of a public list of candidates, picked by its score; for one list or for many at once."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from incrowd.core.coins import Coins
from incrowd.core.loss import Pure
from incrowd.core.terms import Theorem
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.numbers import counting_number, integers, positive

_TRIES = 16  # rounds drawn at first for each choice; more follow for those still undecided
_AT_ONCE = 2**20  # numbers in memory at a time: 8 MB


@dataclass(frozen=True)
class ScoreSelection:
    """Parameters of a selection by score: its epsilon, and by how much one unit of privacy moves a score."""

    epsilon: Fraction
    sensitivity: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive(self.epsilon, "epsilon"))
        counting_number(self.sensitivity, "sensitivity")

    @property
    def loss(self) -> Pure:
        return Pure(self.epsilon)

    @property
    def scale(self) -> Fraction:
        """How far below the best a score must lie to be e times less likely; the mean of noise, where it is added."""
        return 2 * self.sensitivity / self.epsilon


@dataclass(frozen=True)
class Exponential(ScoreSelection):
    """Picks candidate r with probability proportional to e^(epsilon · score_r / (2 sensitivity)).

    Guarantee: epsilon-differential privacy.  One person changes each weight by a factor of at most e^(epsilon/2), up or
    down, and therefore their sum as well; the two may work against each other, so the probability changes by e^epsilon.
    Assumes: one unit of privacy moves every score by at most `sensitivity`; the candidates are public.
    Source: McSherry and Talwar 2007, Theorem 6.

    >>> from incrowd.noise.system import SystemCoins
    >>> Exponential(Fraction(1)).release(np.array([0, 900, 0]), SystemCoins())
    1
    >>> Exponential(Fraction(1)).loss
    Pure(epsilon=Fraction(1, 1))
    """

    because: ClassVar[Theorem] = Theorem("exponential-mechanism", "McSherry and Talwar 2007, Theorem 6")

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

    Guarantee: epsilon-differential privacy.  If one person moves all scores in the same direction, or not at all, then
    a weight and the sum of weights both grow by a factor between 1 and e^epsilon (or both shrink), and so their
    quotient changes by at most e^epsilon.
    Assumes: as `Exponential`, and that no unit of privacy can raise one score and lower another.  Counts under adding
    or removing people are such scores; under replacing people they are not.
    Source: McSherry and Talwar 2007, Theorem 6, with the proof above.
    """

    because: ClassVar[Theorem] = Theorem(
        "exponential-mechanism-monotone", "McSherry and Talwar 2007, for monotone scores"
    )

    @property
    def scale(self) -> Fraction:
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


@dataclass(frozen=True)
class NoisyMax(ScoreSelection):
    """Reports the candidate whose score is highest after exponential noise of mean 2 · sensitivity / epsilon on each.

    Guarantee: epsilon-differential privacy for the position of the winner.  Its score, noisy or not, is not free:
    release it with fresh noise and charge it (`MostCommon`).
    Assumes: one unit of privacy moves every score by at most `sensitivity`; the candidates are public.
    Source: McKenna and Sheldon 2020 (permute-and-flip); Ding, Kifer, Saghaian, Steinke, Wang, Xiao and Zhang 2021.

    Noise is never drawn.  An exponential noise lifts a score that lies `gap` below the best one above it with chance
    e^(−gap/scale), and by how much is again exponential whatever the gap.  The winner is above the best score,
    and all candidates above it are equally likely to win: so toss these coins and draw one of the heads.  This is
    exact, and ties between equal scores are settled by fair chance.

    Proof of the guarantee.  Fix the noise of all candidates but r.  Then r wins if its noise exceeds some number T.
    One person moves T by at most 2 · sensitivity (its own score down and a rival up), and P[noise > T + s] ≥
    e^(−s/scale) P[noise > T] for exponential noise of mean `scale` and s ≥ 0.  ∎

    >>> from incrowd.noise.system import SystemCoins
    >>> NoisyMax(Fraction(1)).release(np.array([0, 900, 0]), SystemCoins())
    1
    """

    because: ClassVar[Theorem] = Theorem("permute-and-flip", "McKenna and Sheldon 2020, permute-and-flip")

    def release(self, scores: NDArray[Any], coins: Coins) -> int:
        """Return the position of the winner."""
        heads = np.flatnonzero(coins.decay(self.scale, gaps_below_best(scores)))
        return int(heads[coins.below(heads.size, 1)[0]])


@dataclass(frozen=True)
class MonotoneNoisyMax(NoisyMax):
    """As `NoisyMax`, with half the noise, for scores that move together.

    Guarantee: epsilon-differential privacy for the position of the winner.
    Assumes: as `NoisyMax`, and that no unit of privacy can raise one score and lower another.  Counts under adding or
    removing people are such scores; under replacing people they are not.
    Source: as `NoisyMax`; in its proof T now moves by at most `sensitivity`, since r and its rivals move the same way.
    """

    because: ClassVar[Theorem] = Theorem(
        "permute-and-flip-monotone", "McKenna and Sheldon 2020, permute-and-flip, for monotone scores"
    )

    @property
    def scale(self) -> Fraction:
        return self.sensitivity / self.epsilon


def select_each(mechanism: Exponential | NoisyMax, scores: NDArray[Any], coins: Coins) -> NDArray[np.int64]:
    """Return for each row of scores the position that the mechanism picks, all rows independently of each other.

    The law is that of `mechanism.release` for each row.  The exponential mechanism tries uniform candidates in each row
    until one is accepted with chance e^(−gap / scale); noisy max tosses that coin for every candidate and draws among
    the heads.

    >>> from fractions import Fraction
    >>> from incrowd.noise.system import SystemCoins
    >>> select_each(Exponential(Fraction(1)), np.array([[0, 900], [900, 0]]), SystemCoins()).tolist()
    [1, 0]
    """
    whole = integers(scores)
    if whole.ndim != 2 or not whole.shape[1]:
        raise InvalidParameter("selection needs a list of at least one candidate for each group.")
    gaps = whole.max(axis=1, keepdims=True) - whole
    return _flipped(mechanism, gaps, coins) if isinstance(mechanism, NoisyMax) else _tried(mechanism, gaps, coins)


def _tried(mechanism: Exponential, gaps: NDArray[np.int64], coins: Coins) -> NDArray[np.int64]:
    result = np.zeros(len(gaps), dtype=np.int64)
    waiting, tries = np.arange(len(gaps)), _TRIES
    while waiting.size:
        tried = coins.below(gaps.shape[1], waiting.size * tries).reshape(waiting.size, tries)
        accepted = coins.decay(mechanism.scale, gaps[waiting[:, None], tried].ravel()).reshape(tried.shape)
        done = accepted.any(axis=1)
        result[waiting[done]] = tried[done, accepted[done].argmax(axis=1)]
        waiting = waiting[~done]
        tries = min(2 * tries, max(_TRIES, _AT_ONCE // max(1, waiting.size)))
    return result


def _flipped(mechanism: NoisyMax, gaps: NDArray[np.int64], coins: Coins) -> NDArray[np.int64]:
    heads = coins.decay(mechanism.scale, gaps.ravel()).reshape(gaps.shape)
    numbers = heads.sum(axis=1)
    chosen = np.array([coins.below(int(number), 1)[0] for number in numbers], dtype=np.int64)
    ranks = heads.cumsum(axis=1) - 1
    return np.asarray((heads & (ranks == chosen[:, None])).argmax(axis=1), dtype=np.int64)
