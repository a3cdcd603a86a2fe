"""Nearest ids: those that differ from a text by few letters; they are values, for the data holder's terminal alone."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from incrowd.core.subjects import alike_form

_FARTHEST = 2  # changed letters; more would suggest names that nobody meant
_LONGEST = 64  # the distance costs the product of lengths


def nearest_ids(text: str, ids: Collection[str], most: int = 3) -> tuple[str, ...]:
    """Return the ids that are written alike, then those that differ by the fewest letters, at most 2 of them.

    >>> nearest_ids("B00010", ["B000010", "b10", "B00110", "Z9"])
    ('B000010', 'b10', 'B00110')
    """
    own, names = alike_form(text), sorted(set(ids) - {text})
    alike = [name for name in names if alike_form(name) == own]
    near = [name for name in names if abs(len(name) - len(text)) <= _FARTHEST and len(name) <= _LONGEST]
    apart = distances(text.casefold(), [name.casefold() for name in near])
    order = np.argsort(apart, kind="stable").tolist()
    farthest = min(_FARTHEST, (len(text) - 1) // 2)
    close = [near[place] for place in order if apart[place] <= farthest]
    return tuple(dict.fromkeys([*alike, *close]))[:most]


def distances(text: str, others: Collection[str]) -> NDArray[np.int64]:
    """Return how many letters must be put in, left out, changed or swapped with the next to get from one to another.

    >>> distances("abcd", ["abcd", "acbd", "abc", "xbcdy", ""]).tolist()
    [0, 1, 1, 2, 4]
    """
    width = max(map(len, others), default=0)
    letters = np.array([list(other.ljust(width, "\0")) for other in others], "U1").reshape(len(others), width)
    sizes = np.array([len(other) for other in others], np.int64)
    before = row = np.tile(np.arange(width + 1), (len(others), 1))
    for place, letter in enumerate(text):
        earlier, before, row = before, row, np.empty_like(row)
        row[:, 0] = place + 1
        for other in range(width):
            change = before[:, other] + (letters[:, other] != letter)
            row[:, other + 1] = np.minimum(np.minimum(row[:, other], before[:, other + 1]) + 1, change)
            if place and other:
                swapped = (letters[:, other - 1] == letter) & (letters[:, other] == text[place - 1])
                swap = np.where(swapped, earlier[:, other - 1] + 1, len(text) + width)
                row[:, other + 1] = np.minimum(row[:, other + 1], swap)
    result: NDArray[np.int64] = row[np.arange(len(others)), sizes]
    return result
