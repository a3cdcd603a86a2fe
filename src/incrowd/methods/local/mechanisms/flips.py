"""Flips: many independent coins of one rational chance, eight bits of randomness for most of them."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from incrowd.core.coins import Coins

_BYTES = 7
_WORD = 2 ** (8 * _BYTES)


def flips(coins: Coins, chance: Fraction, size: int) -> NDArray[np.bool_]:
    """Toss `size` independent coins that come up true with exactly a chance below 1.

    A chance is (t + f) / 256 with a whole t and f below 1: a uniform byte below t is true, one equal to t is true with
    chance f, which another coin decides.

    >>> from incrowd.noise.system import SystemCoins
    >>> flips(SystemCoins(), Fraction(0), 9).sum()
    np.int64(0)
    """
    limit, rest = threshold(chance)
    words = coins.below(_WORD, -(-size // _BYTES))
    drawn = words.astype("<i8").view(np.uint8).reshape(-1, 8)[:, :_BYTES].reshape(-1)[:size]
    result: NDArray[np.bool_] = drawn < limit
    if rest:
        ties = np.flatnonzero(drawn == limit)
        result[ties] = coins.bernoulli(rest, len(ties))
    return result


def threshold(chance: Fraction) -> tuple[int, Fraction]:
    """Return the whole t and the rest f with chance = (t + f) / 256.

    >>> threshold(Fraction(1, 3))
    (85, Fraction(1, 3))
    """
    limit = int(256 * chance)
    return limit, 256 * chance - limit
