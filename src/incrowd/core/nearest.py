"""Nearest ids: those that differ from a text by few letters; they are values, for the data holder's terminal alone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from incrowd.core.subjects import alike_form

_FARTHEST = 2  # changed letters; more would suggest names that nobody meant
_LONGEST = 64  # the distance costs the product of lengths


@dataclass(frozen=True, eq=False)
class IdIndex:
    """Ids with which many texts are compared.

    >>> IdIndex.of(["B000010", "b10", "B00110", "Z9"]).nearest("B00010")
    ('B000010', 'b10', 'B00110')
    """

    names: Sequence[str] = field(repr=False)
    forms: Sequence[str] = field(repr=False)
    letters: NDArray[np.str_] = field(repr=False)

    @classmethod
    def of(cls, ids: Collection[str]) -> IdIndex:
        """Return an index of ids."""
        names = sorted(set(ids))
        short = [name.casefold() if len(name) <= _LONGEST else "" for name in names]
        return cls(names, [alike_form(name) for name in names], np.array(short, np.str_))

    def nearest(self, text: str, most: int = 3) -> tuple[str, ...]:
        """Return the ids that are written alike, then those that differ by the fewest letters, at most 2 of them."""
        own = alike_form(text)
        alike = [name for name, form in zip(self.names, self.forms, strict=True) if form == own]
        sizes = np.strings.str_len(self.letters)
        near = np.flatnonzero(np.abs(sizes - len(text.casefold())) <= _FARTHEST)
        apart = distances(text.casefold(), self.letters[near])
        farthest = min(_FARTHEST, (len(text) - 1) // 2)
        order = np.argsort(apart, kind="stable")
        close = [self.names[place] for place in near[order[apart[order] <= farthest]][: most + 1].tolist()]
        return tuple(name for name in dict.fromkeys([*alike, *close]) if name != text)[:most]


def distances(text: str, others: NDArray[np.str_]) -> NDArray[np.int16]:
    """Return how many letters must be put in, left out, changed or swapped with the next to get from one to another.

    >>> distances("abcd", np.array(["abcd", "acbd", "abc", "xbcdy", ""])).tolist()
    [0, 1, 1, 2, 4]
    """
    width = others.dtype.itemsize // 4
    letters = np.ascontiguousarray(others.view(np.uint32).reshape(len(others), width).T)
    before = row = np.repeat(np.arange(width + 1, dtype=np.int16)[:, None], len(others), axis=1)
    for place, letter in enumerate(map(ord, text)):
        earlier, before, row = before, row, np.empty_like(row)
        row[0] = place + 1
        for other in range(width):
            change = before[other] + (letters[other] != letter)
            np.minimum(np.minimum(row[other], before[other + 1]) + 1, change, out=row[other + 1])
            if place and other:
                swapped = (letters[other - 1] == letter) & (letters[other] == ord(text[place - 1]))
                np.minimum(row[other + 1], earlier[other - 1] + 1, out=row[other + 1], where=swapped)
    result: NDArray[np.int16] = row[np.strings.str_len(others), np.arange(len(others))]
    return result
