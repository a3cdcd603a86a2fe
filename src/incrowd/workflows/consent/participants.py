"""Participants: how many people took part in a release without an ε in each cell, kept by the holder as counts.

A person whose rows were erased since is in no row of today.  That somebody is missing is still seen: beside the count
of each cell stands a sum of keyed hashes of its people, and the same count with another sum means other people.  No
name, pseudonym or label is kept, so no list of those who were erased can be made.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import combinations
from math import comb
from pathlib import Path
from typing import Any

from incrowd.engines.people import CellLabels
from incrowd.workflows.policy.internal import internal_folder, write_private
from incrowd.workflows.policy.policy import Policy

FILE = "participants.json"
_BYTES = 16  # 128 random bits: no two pseudonyms collide
_ALL = 2 ** (8 * _BYTES)
_WAYS = 200_000
"""How many sets of people are tried."""
_KEY = 32  # bytes: as long as the HMAC's digest, beyond guessing


@dataclass(frozen=True)
class PeopleSum:
    """How many people there are, and the sum of their hashes."""

    number: int
    sum: int


NOBODY = PeopleSum(0, 0)


@dataclass(frozen=True)
class Participants:
    """The people of each cell, whose name is a keyed hash of its labels.

    >>> before = Participants.of({("F",): ["a", "b"], ("M",): ["c"]}, ("sex",))
    >>> today = before.again({("F",): ["a", "d"]})
    >>> women, men = map(before.name, [("F",), ("M",)])
    >>> before.at(women).number == today.at(women).number, before.at(women) == today.at(women), today.at(men).number
    (True, False, 0)
    """

    key: bytes = field(repr=False)
    columns: tuple[str, ...]
    cells: Mapping[str, PeopleSum] = field(repr=False)

    @classmethod
    def of(cls, people: Mapping[CellLabels, Collection[str]], columns: tuple[str, ...]) -> Participants:
        """Return the counts of people, who are named by pseudonyms, in cells of some columns, under a fresh key."""
        return cls(secrets.token_bytes(_KEY), columns, {}).again(people)

    def again(self, people: Mapping[CellLabels, Collection[str]]) -> Participants:
        """Return the counts of other people under the same key."""
        cells = {self.name(cell): self.sum_of(names) for cell, names in people.items() if names}
        return replace(self, cells=cells)

    def at(self, name: str) -> PeopleSum:
        """Return the people of a cell, which is named as here."""
        return self.cells.get(name, NOBODY)

    def name(self, cell: CellLabels) -> str:
        """Return the name of a cell."""
        return blake2b(json.dumps(cell).encode(), key=self.key, digest_size=_BYTES, person=b"cell").hexdigest()

    def sum_of(self, names: Iterable[str]) -> PeopleSum:
        """Return the number of some people and the sum of their hashes."""
        hashes = [blake2b(name.encode(), key=self.key, digest_size=_BYTES).digest() for name in names]
        return PeopleSum(len(hashes), sum(int.from_bytes(digest) for digest in hashes) % 2 ** (8 * _BYTES))

    def parts(self, names: Iterable[str], lacking: Sequence[PeopleSum]) -> list[int] | None:
        """Return how many of some people each of several sets lacks, if these are exactly what they lack; else None.

        Sums of 128-bit hashes agree by chance with a probability far below any that matters; where there are too many
        ways to try, nothing is known.
        """
        rest = {name: self.sum_of([name]).sum for name in names}
        for part in sorted(lacking, key=lambda one: one.number):
            if part.number < 1 or comb(len(rest), part.number) > _WAYS:
                return None
            ways = combinations(rest, part.number)
            match = next((way for way in ways if sum(map(rest.__getitem__, way)) % _ALL == part.sum), None)
            if match is None:
                return None
            rest = {name: number for name, number in rest.items() if name not in match}
        return [part.number for part in lacking]

    def to_json(self) -> dict[str, Any]:
        """Return the plain form, which stays with the data holder."""
        cells = {name: [people.number, f"{people.sum:032x}"] for name, people in sorted(self.cells.items())}
        return {"key": self.key.hex(), "columns": list(self.columns), "cells": cells}


def difference(before: PeopleSum, after: PeopleSum) -> PeopleSum:
    """Return by whom one set of people is larger than another that is part of it."""
    return PeopleSum(before.number - after.number, (before.sum - after.sum) % 2 ** (8 * _BYTES))


def keep_participants(folder: Path | None, participants: Participants | None) -> None:
    """Write who took part, as counts, into the internal folder of a release."""
    if folder is not None and participants is not None:
        write_private(folder / FILE, participants.to_json())


def participants_of(policy: Policy, release: str) -> Participants | None:
    """Return who took part in a release, as counts; None where this is not known."""
    try:
        plain = json.loads((internal_folder(policy, release) / FILE).read_text(encoding="utf-8"))
        cells = {str(name): PeopleSum(int(count), int(total, 16)) for name, (count, total) in plain["cells"].items()}
        return Participants(bytes.fromhex(plain["key"]), tuple(map(str, plain["columns"])), cells)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
