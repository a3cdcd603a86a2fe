"""Uniform words: where all chance begins."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Words = Callable[[int], NDArray[np.uint64]]
"""Gives that many fresh, independent, uniform 64-bit words."""

KEY_BYTES = 32


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
