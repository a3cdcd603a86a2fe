"""Secret samples whose coins depend on a row's position or id: a row read twice meets the same coin."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from incrowd.errors import InvalidParameter
from incrowd.noise.toss import KEY_BYTES

_WORD = 64  # bits of a row's coin: the rate is rounded down to a multiple of 2⁻⁶⁴, and sampling less costs less
_CHUNK = 2**14  # rows at a time: 128 KB of the cipher's stream


@dataclass(frozen=True, eq=False)
class PositionedSample:
    """A secret Poisson sample: a row is in it if its 64-bit word is below floor(rate · 2^64).

    The words are AES-256 under two secret keys, one for positions (counter mode: position i has word i of the key
    stream) and one for ids (one block per id), so they cannot coincide and any range of positions can be computed
    anywhere, in any order.  The true rate is at most 2^(−64) below the stated one and never above it; a lower rate
    never weakens a guarantee made for a higher one, since it is the same sample thinned.

    The keys are fresh for every sample and live in memory only.  They are not shown by `repr`; pickling carries them,
    because workers need them, so a pickled sample is as secret as the rows.

    Assumes: AES-256 cannot be told from a random permutation; n rows then differ from independent coins by n² / 2^129.

    >>> sample = PositionedSample.fresh(Fraction(1, 10))
    >>> sample
    PositionedSample(rate=Fraction(1, 10))
    >>> bool((sample.at(0, 1000)[600:] == sample.at(600, 1000)).all())
    True
    """

    rate: Fraction
    _position_key: bytes = field(repr=False)
    _id_key: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if not 0 < self.rate < 1:
            raise InvalidParameter("a sampling rate must lie strictly between 0 and 1; for all rows, use no sample.")
        if not self._limit:
            raise InvalidParameter("a sampling rate below 2^(-64) would sample nobody; choose a higher one.")

    @classmethod
    def fresh(cls, rate: Fraction) -> PositionedSample:
        """Return a sample under new keys from the operating system."""
        return cls(rate, os.urandom(KEY_BYTES), os.urandom(KEY_BYTES))

    def at(self, start: int, stop: int) -> NDArray[np.bool_]:
        """Return for each position in [start, stop) whether that row is in the sample."""
        if not 0 <= start <= stop <= 2**63:
            raise InvalidParameter("positions must lie between 0 and 2^63, and a range must not end before it starts.")
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        first = start // 2  # a block holds two words
        stream = Cipher(algorithms.AES(self._position_key), modes.CTR(first.to_bytes(16, "big"))).encryptor()
        skip, limit = start - 2 * first, self._limit
        result = np.empty(skip + stop - start, dtype=np.bool_)
        zeros, buffer = bytes(8 * _CHUNK), bytearray(8 * _CHUNK + 16)  # the cipher needs one spare block
        words = np.frombuffer(buffer, dtype="<u8")
        for done in range(0, result.size, _CHUNK):
            part = result[done : done + _CHUNK]
            stream.update_into(zeros[: 8 * part.size], buffer)
            np.less(words[: part.size], limit, out=part)
        return result[skip:]

    def of(self, ids: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Return for each id whether its row is in the sample.

        Ids are unsigned 64-bit numbers, or rows of two of them (128 bits, for hashed ids that must not collide).
        """
        if ids.dtype != np.uint64 or ids.ndim not in (1, 2) or (ids.ndim == 2 and ids.shape[1] != 2):
            raise InvalidParameter("ids must be unsigned 64-bit integers, one or two a row; convert them first.")
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        block = Cipher(algorithms.AES(self._id_key), modes.ECB()).encryptor()  # noqa: S305  a permutation, not a message
        result = np.empty(ids.shape[0], dtype=np.bool_)
        for done in range(0, result.size, _CHUNK):
            part = ids[done : done + _CHUNK]
            blocks = np.zeros((part.shape[0], 2), dtype="<u8")
            blocks[:, : ids.ndim] = part[:, None] if ids.ndim == 1 else part
            words = np.frombuffer(block.update(blocks.tobytes()), dtype="<u8")
            np.less(words[::2], self._limit, out=result[done : done + _CHUNK])
        return result

    @property
    def _limit(self) -> np.uint64:
        return np.uint64((self.rate.numerator << _WORD) // self.rate.denominator)
