"""Coins on a cluster: secret words that hang on a row's place, and names for people that only one release knows."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.reading import as_dictionary, canonical, read

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.schema import Column
    from incrowd.engines.spark.places import Places

_KEY_BYTES = 32
_WORD = 2**32


def fresh_key(coins: Coins) -> bytes:
    """Draw a key of 256 bits.

    >>> from incrowd.noise.system import SystemCoins
    >>> len(fresh_key(SystemCoins()))
    32
    """
    return coins.below(_WORD, _KEY_BYTES // 4).astype("<u4").tobytes()


def ranks(key: bytes, places: Places) -> pa.Array:
    """Return 16 bytes for each row by which rows can be put in a secret random order, the same wherever it is asked.

    They are AES-256 blocks of what tells rows apart: a permutation, so that no two rows tie.

    >>> from incrowd.engines.spark.places import Positions
    >>> first = ranks(bytes(32), Positions(np.array([4, 5, 6])))
    >>> first[1:].equals(ranks(bytes(32), Positions(np.array([5, 6])))), first.type
    (True, DataType(binary))
    """
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    cipher = Cipher(algorithms.AES(key), modes.ECB()).encryptor()  # noqa: S305  a permutation, not a message
    blocks = places.blocks()
    return fixed(cipher.update(blocks.astype("<u8").tobytes()), len(blocks))


def people(key: bytes, array: pa.Array, column: Column) -> pa.Array:
    """Return 16 bytes for each row that stand for its person, null where there is none.

    People are told apart by the exact value of the column, read as its declared type.  The bytes are a keyed hash
    (BLAKE2b): what lies on the disks of workers names nobody.  Two of n people coincide with a chance of n² / 2^129.

    >>> from incrowd.core.schema import Column
    >>> found = people(bytes(32), pa.array(["a", None, "a", "b"]), Column("patient"))
    >>> found[0] == found[2], found[1].is_valid, found[0] == found[3]
    (True, False, False)
    """
    values, indices = as_dictionary(array)
    names = canonical(read(values, column.type).values).to_pylist()
    hashed = pa.array([None if name is None else _hashed(key, name) for name in names], pa.binary())
    if indices is None:
        return hashed
    taken: NDArray[np.integer] = indices
    return hashed.take(pa.array(taken, mask=taken == len(values)))


def _hashed(key: bytes, name: str) -> bytes:
    return hashlib.blake2b(name.encode(), key=key, digest_size=16).digest()


def fixed(content: bytes, length: int) -> pa.Array:
    """Return an array of `length` binary values that lie end to end, all equally long.

    >>> fixed(b"abcd", 2).to_pylist()
    [b'ab', b'cd']
    """
    width = len(content) // length if length else 1
    whole = pa.Array.from_buffers(pa.binary(width), length, [None, pa.py_buffer(content)])
    return whole.cast(pa.binary())
