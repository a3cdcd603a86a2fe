"""NewestTable: for many people the newest times of several kinds, in memory that grows with people, not with events."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from incrowd.governance.consent.columns import NONE, Integers, Words


@dataclass
class NewestTable:
    """Pseudonyms in order, and for each the largest number of every slot.

    >>> table = NewestTable(2)
    >>> people = np.array([[7, 0], [5, 0], [7, 0]], np.uint64)
    >>> table.merge(people, (np.array([0, 0, 0]), np.array([10, 20, 30])))
    >>> table.keys[:, 0].tolist(), table.newest[0].tolist()
    ([5, 7], [20, 30])
    """

    slots: int
    keys: Words = field(init=False)
    newest: Integers = field(init=False)

    def __post_init__(self) -> None:
        self.keys = np.zeros((0, 2), np.uint64)
        self.newest = np.zeros((self.slots, 0), np.int64)

    def merge(self, people: Words, *columns: tuple[Integers, Integers]) -> None:
        """Take more numbers of people: columns of slots, and of the number that each person brings to that slot."""
        if not len(people):
            return
        order = np.argsort(people[:, 0], kind="stable")
        ordered = people[order]
        if _mixed(ordered):
            order = np.lexsort((people[:, 1], people[:, 0]))
            ordered = people[order]
        first = np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1))
        codes = self._insert(ordered[first])[np.cumsum(first) - 1]
        for slots, numbers in columns:
            np.maximum.at(self.newest.reshape(-1), slots[order] * self.newest.shape[1] + codes, numbers[order])

    def find(self, people: Words) -> tuple[Integers, NDArray[np.bool_]]:
        """Return where each person stands, or would stand, and who is in the table."""
        places = np.searchsorted(self.keys[:, 0], people[:, 0])
        size = len(self.keys)
        while True:  # pseudonyms with the same first word are in order of their second
            inside = np.minimum(places, size - 1)
            behind = (places < size) & (self.keys[inside, 0] == people[:, 0]) & (self.keys[inside, 1] < people[:, 1])
            if not behind.any():
                break
            places = places + behind
        present = (places < size) & (self.keys[np.minimum(places, size - 1)] == people).all(axis=1)
        return places, present

    def _insert(self, people: Words) -> Integers:
        """Return the places of people, who are in order and each once, and make room for new ones."""
        if not len(self.keys):
            self.keys = people
            self.newest = np.full((self.slots, len(people)), NONE)
            return np.arange(len(people))
        places, present = self.find(people)
        new = ~present
        if new.any():
            self.keys = np.insert(self.keys, places[new], people[new], axis=0)
            self.newest = np.insert(self.newest, places[new], NONE, axis=1)
        return places + np.cumsum(new) - new


def _mixed(ordered: Words) -> bool:
    """Whether different pseudonyms have the same first word, so that equal ones need not stand together."""
    return bool(((ordered[1:, 0] == ordered[:-1, 0]) & (ordered[1:, 1] != ordered[:-1, 1])).any())
