"""Crowds: claims that everyone has company, and that names are hidden; they bound nothing for those who know more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from incrowd.core.claims.claim import Claim, Precondition, Status, checked
from incrowd.core.terms import Assumption, Condition, Exposure, Theorem
from incrowd.core.unit import Unit

SHARED_VALUE = Exposure("shared-value", "a class whose members agree in a sensitive value gives that value away")
SPLIT = Exposure("classes-split", "a second release, or outside knowledge, can split classes")
FEWER_PEOPLE = Exposure("fewer-people", "k counts rows: a class may be as few people as `people` says")
RECOUNTED = Condition("recounted", "the written output was counted again")
_KEY = Assumption("pseudonym-key-secret", "the key is kept apart, and nobody who receives the release knows it")


_COUNTED_TUPLES = Theorem("counted-tuples", "counted: every tuple over all released columns occurs at least k times")
_KEYED_PSEUDONYMS = Theorem(
    "keyed-pseudonyms", "HMAC-SHA-256: without the key a pseudonym tells nothing about the value behind it"
)
_KEY_HOLDERS = Exposure(
    "key-holders", "whoever holds the key, or can have values pseudonymized, can tell whose pseudonym it is"
)
_LINKED_PSEUDONYMS = Exposure(
    "linked-pseudonyms", "rows of one value are linked, here and in every release made with the same key"
)


def blended(epsilon: Fraction) -> str:
    """Return what (k, ε)-crowd-blending says, for people.

    >>> blended(Fraction(0)).startswith("Everyone is one of at least k people whose data could stand in for each")
    True
    """
    changed = "more or less likely" + (" by more than the factor e^ε" if epsilon else "")
    return (
        f"Everyone is one of at least k people whose data could stand in for each other's without making any outcome "
        f"{changed}; or else no outcome is {changed} with them than without them."
    )


@dataclass(frozen=True, kw_only=True)
class Blending(Claim):
    """(k, ε)-crowd-blending."""

    kind = "crowd-blending"
    rank: ClassVar[int] = 20
    signs: ClassVar[Mapping[str, str]] = {"epsilon": "ε of blending"}

    k: int
    epsilon: Fraction

    @property
    def sentence(self) -> str:
        """What is claimed, for people."""
        return blended(self.epsilon)


@dataclass(frozen=True, kw_only=True)
class Anonymity(Claim):
    """k-anonymity: nothing that is published of a row is rare."""

    kind = "k-anonymity"
    sentence = "Each published combination of values in the named columns occurs at least k times."
    rank: ClassVar[int] = 30

    k: int
    columns: tuple[str, ...]
    people: int | None = None
    tables: int | None = None


@dataclass(frozen=True, kw_only=True)
class Pseudonymity(Claim):
    """Identifiers stand under keyed pseudonyms: a property of form, and no more."""

    kind = "pseudonymization"
    sentence = "Names in these columns are replaced by codes that only the holder of a key can make."
    rank: ClassVar[int] = 90

    columns: tuple[str, ...]


def anonymity(k: int, columns: tuple[str, ...], unit: Unit, people: int | None) -> Anonymity:
    """Return the claim over all released columns, which anyone can recount; `people` where one has several rows."""
    return Anonymity(
        k=k,
        columns=columns,
        people=people,
        unit=unit,
        theorem=(_COUNTED_TUPLES,),
        preconditions=checked(RECOUNTED),
        not_protected=(*([] if people is None else [FEWER_PEOPLE]), SHARED_VALUE, SPLIT),
    )


def pseudonymity(columns: tuple[str, ...], unit: Unit) -> tuple[Pseudonymity, ...]:
    """Return the claim that these columns hold pseudonyms; none without columns."""
    if not columns:
        return ()
    claim = Pseudonymity(
        columns=columns,
        unit=unit,
        theorem=(_KEYED_PSEUDONYMS,),
        preconditions=(Precondition(_KEY, Status.ASSUMED),),
        not_protected=(
            _KEY_HOLDERS,
            _LINKED_PSEUDONYMS,
        ),
    )
    return (claim,)
