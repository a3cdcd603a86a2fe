"""Exact coins and uniform integers from uniform words, which a cipher under a fresh key gives."""

from __future__ import annotations

import os
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from incrowd.noise.chance import Chance, exponential

Words = Callable[[int], NDArray[np.uint64]]
"""Gives that many fresh, independent, uniform 64-bit words."""

KEY_BYTES = 32  # AES-256; the key comes from the operating system and is never stored
WORD = 64  # bits of randomness per comparison; a draw that ties in all of them reads further words
LIMB = 31  # two numbers of 62 bits are multiplied by halves, so that products stay below 2⁶³


def fresh_words() -> Words:
    """Return a new stream of uniform words: AES-256 in counter mode under a key the operating system just drew.

    The key is drawn once, used by one caller and forgotten with the stream.  Streams are never shared, so neither
    threads nor forked processes can meet the same words twice.  Assumes: AES-256 cannot be told from a random
    permutation; with n words the counter mode then differs from true randomness by at most n² / 2^130.

    >>> fresh_words()(3).shape
    (3,)
    """
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    stream = Cipher(algorithms.AES(os.urandom(KEY_BYTES)), modes.CTR(bytes(16))).encryptor()

    def words(size: int) -> NDArray[np.uint64]:
        return np.frombuffer(stream.update(bytes(8 * size)), dtype="<u8")

    return words


def toss(words: Words, chance: Chance, size: int) -> NDArray[np.bool_]:
    """Toss `size` independent coins that come up true with exactly the given chance.

    Read as a binary fraction, an endless uniform word is below p with chance p.  The first 64 bits nearly always
    decide; where they equal those of p, the next 64 are drawn and compared, and so on.
    """
    limit = chance(WORD)
    if limit >> WORD:  # p = 1
        return np.ones(size, dtype=np.bool_)
    uniform = words(size)
    result = uniform < np.uint64(limit)
    for tie in np.flatnonzero(uniform == np.uint64(limit)):
        result[tie] = _settle(words, chance)
    return result


def below(words: Words, bound: int, size: int) -> NDArray[np.int64]:
    """Draw `size` independent integers, uniform on 0, …, bound − 1, for bounds up to 2^63.

    The fewest bits that can hold them are drawn; what is not below the bound is drawn again.
    """
    if bound == 1:
        return np.zeros(size, dtype=np.int64)
    shift = np.uint64(WORD - (bound - 1).bit_length())
    result = words(size) >> shift
    if bound & (bound - 1) == 0:  # every draw is below a power of two
        return result.view(np.int64)
    again = np.flatnonzero(result >= np.uint64(bound))
    while again.size:
        result[again] = words(again.size) >> shift
        again = again[result[again] >= np.uint64(bound)]
    return result.astype(np.int64)


def decay(words: Words, scale: Fraction, steps: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Toss for each number of steps n ≥ 0 a coin that comes up true with exactly e^(−n / scale).

    If n has the binary digits b_j, then e^(−n/scale) is the product of e^(−2^j/scale) over the digits that are 1:
    the coin is true if one coin per such digit is.  The highest digits, which decide most, are tossed first.
    """
    alive = np.arange(steps.size)
    for digit in reversed(range(int(steps.max(initial=0)).bit_length())):
        tossed = np.flatnonzero((steps[alive] >> digit) & 1)
        survives = np.ones(alive.size, dtype=np.bool_)
        survives[tossed] = toss(words, exponential(2**digit / scale), tossed.size)
        alive = alive[survives]
    result = np.zeros(steps.size, dtype=np.bool_)
    result[alive] = True
    return result


def decay_of_product(
    words: Words, scale: Fraction, left: NDArray[np.int64], right: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Toss coins that come up true with exactly e^(−left · right / scale), without forming products above 2^62.

    Both factors are split into limbs of 31 bits; the product is a sum over pairs of limbs, the chance a product.
    """
    mask = 2**LIMB - 1
    result = np.ones(left.size, dtype=np.bool_)
    for i, a in enumerate((left & mask, left >> LIMB)):
        for j, b in enumerate((right & mask, right >> LIMB)):
            result &= decay(words, scale / 2 ** (LIMB * (i + j)), a * b)
    return result


def _settle(words: Words, chance: Chance) -> bool:
    bits = WORD
    while True:
        bits += WORD
        digits: int = chance(bits) % 2**WORD
        uniform = int(words(1)[0])
        if uniform != digits:
            return uniform < digits
