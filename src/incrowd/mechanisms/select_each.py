"""Select each: one candidate for every one of many groups, at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from incrowd.core.coins import Coins
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.integers import integers
from incrowd.mechanisms.noisy_max import NoisyMax
from incrowd.mechanisms.select import Exponential

_TRIES = 16
_AT_ONCE = 2**20


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
