"""The nearest ids are those that a slow count of changes finds."""

from __future__ import annotations

import random
from itertools import product

import numpy as np

from incrowd.core.nearest import IdIndex, distances


def changes(one: str, other: str) -> int:
    """Count, prefix by prefix, the fewest letters put in, left out, changed or swapped with the next."""
    table = {(row, -1): row + 1 for row in range(-1, len(one))} | {
        (-1, place): place + 1 for place in range(len(other))
    }
    for row, place in product(range(len(one)), range(len(other))):
        ways = [table[row - 1, place] + 1, table[row, place - 1] + 1]
        ways.append(table[row - 1, place - 1] + (one[row] != other[place]))
        if row and place and one[row - 1 : row + 1] == other[place - 1 : place + 1][::-1]:
            ways.append(table[row - 2, place - 2] + 1)
        table[row, place] = min(ways)
    return table[len(one) - 1, len(other) - 1]


def test_distances_are_those_of_a_slow_count() -> None:
    words = ["".join(letters) for size in range(5) for letters in product("ab1", repeat=size)]
    for word in random.Random(1).sample(words, 12):
        assert distances(word, np.array(words)).tolist() == [changes(word, other) for other in words]


def test_ids_written_alike_come_first_and_the_text_itself_never() -> None:
    index = IdIndex.of(["B000010", "b10", "B00110", "Z9", "Straße 1", "x" * 100])
    assert index.nearest("B00010") == ("B000010", "b10", "B00110")
    assert index.nearest("b10") == ("B000010",)
    assert index.nearest("STRASSE 1") == ("Straße 1",)
    assert index.nearest("x" * 101) == index.nearest("q") == IdIndex.of([]).nearest("a") == ()
