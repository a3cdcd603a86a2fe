"""What a table with missing cells claims: how many rows agree, in which columns, and in which sense of missing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from incrowd.core.certificate import Claim, Precondition, Status
from incrowd.core.loss import Syntactic
from incrowd.core.schema import Schema
from incrowd.core.unit import Unit
from incrowd.methods.anonymity import syntactic

STRICT, WILD = "k-anonymity", "k-anonymity with wildcards"
SUBSETS, WILD_SUBSETS = "k-anonymity of subsets", "k-anonymity of subsets with wildcards"

CHOICE = (
    "minimality: which cells are missing was chosen by looking at all rows, so somebody who knows the method and the "
    "others' rows can conclude from a missing cell what it was not"
)
MATCHES = (
    "matching: a missing cell counts as if it could be any value; somebody who knows what it was sees fewer rows that "
    "could be a person's, perhaps only one"
)
BLANK = (
    "optimism: a row that shows little counts for everyone, so rows that show everything may be counted in a crowd and "
    "yet be the only ones of their kind"
)
_EVERY = "Samarati & Sweeney 1998, counted: every combination of the quasi-identifiers occurs at least k times"
_SOME = "counted: every combination of values in any so many of the quasi-identifiers occurs at least k times"
_WILD = "counted as in statistical disclosure control: at least k rows match each row, a missing cell matching anything"
_WILD_SOME = (
    "counted: in any so many of the quasi-identifiers at least k rows match each row, missing matching anything"
)


@dataclass(frozen=True)
class Counted:
    """How many rows agree in all quasi-identifiers, in subsets of a size, and whether missing cells match."""

    k: int
    subsets: Mapping[int, int]
    wild: bool

    def told(self) -> dict[str, Any]:
        """Return the numbers as they stand in certificates.

        >>> Counted(5, {2: 9}, wild=False).told()
        {'k': 5, 'k of any 2': 9}
        """
        return {"k": self.k, **{f"k of any {size}": self.subsets[size] for size in sorted(self.subsets)}}

    def loss(self, schema: Schema) -> Syntactic:
        """Return the loss: an honest name for all of it."""
        told = tuple((name, str(value)) for name, value in self.told().items())
        drafted = (("drafted from rows", ", ".join(schema.drafted)),) if schema.drafted else ()
        return Syntactic(WILD if self.wild else STRICT, (*told, *drafted))

    def claims(self, schema: Schema) -> tuple[Claim, ...]:
        """Return a claim about all quasi-identifiers and one for each size of subsets; beside these, k of 1 is none."""
        columns, unit = list(syntactic.quasi_identifiers(schema)), schema.unit
        whole = (WILD, _WILD) if self.wild else (STRICT, _EVERY)
        part = (WILD_SUBSETS, _WILD_SOME) if self.wild else (SUBSETS, _SOME)
        told = [(part, {"k": self.subsets[size], "size": size}) for size in sorted(self.subsets)]
        if self.k > 1 or not self.subsets:
            told.insert(0, (whole, {"k": self.k}))
        return tuple(self._claim(words, {**given, "columns": columns}, unit) for words, given in told)

    def _claim(self, words: tuple[str, str], given: Mapping[str, Any], unit: Unit) -> Claim:
        kind, theorem = words
        several = {"people": math.ceil(given["k"] / unit.max_rows)} if unit.max_rows > 1 else {}
        people = ("k counts rows: a class may be as few people as `people` says",) if unit.max_rows > 1 else ()
        wild = (MATCHES, BLANK) if self.wild else ()
        conditions = (
            Precondition("the written output was counted again", Status.CHECKED),
            *(Precondition(text, Status.ASSUMED) for text in sorted(syntactic.assumptions(unit))),
        )
        open_ = (*people, *wild, syntactic.HOMOGENEITY, CHOICE, syntactic.INTERSECTION)
        return Claim(kind, {**given, **several}, str(unit), theorem, conditions, open_)
