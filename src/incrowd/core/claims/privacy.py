"""Privacy: the claims that several methods share, from differential privacy and zero-knowledge to k-anonymity.

Claims with an ε bound what anyone can learn about one unit, whatever they know.  The others say something of a table's
form, and bound nothing for those who know more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import ClassVar

from incrowd.core.claims.claim import Claim, Precondition, Status, checked
from incrowd.core.terms import Assumption, Condition, Exposure, Theorem
from incrowd.core.unit import Adjacency, Kind, Unit


class SampleOrigin(StrEnum):
    """Where a biased sample was drawn: by others, before the rows came here, or by the program."""

    BEFORE = "before"
    HERE = "here"


def neighbors(unit: Unit) -> str:
    """Return the pairs of tables or graphs that a guarantee compares, as the beginning of a sentence.

    >>> neighbors(Unit(adjacency=Adjacency.REPLACE))
    'For any two neighboring tables (one row, replaced)'
    >>> neighbors(Unit(Kind.NODE))
    'For any two neighboring graphs (one node with all its edges, added or removed)'
    """
    if unit.kind.of_edges:
        return f"For any two neighboring graphs on the same nodes ({unit})"
    if unit.kind is Kind.NODE:
        return f"For any two neighboring graphs ({str(unit).replace('one node', 'one node with all its edges', 1)})"
    return f"For any two neighboring tables ({unit})"


def _ratio(unit: Unit) -> str:
    what = "graph" if unit.kind.of_edges or unit.kind is Kind.NODE else "table"
    return f"{neighbors(unit)}: every set of outcomes has at most e^ε times its probability under the other {what}"


@dataclass(frozen=True, kw_only=True)
class Private(Claim):
    """Differential privacy: the numbers that the guarantee depends on, and for whom it holds."""

    rank: ClassVar[int] = 0
    numbers: ClassVar[Mapping[str, str]] = {"epsilon": "epsilon"}
    instead: ClassVar[str] = "with any other record in place of yours"
    """What your data is compared with, where records are replaced."""

    epsilon: Decimal | Fraction
    adjacency: Adjacency
    max_rows: int
    k: int | None = None
    rate: Fraction | None = None
    noise: str | None = None
    scale: Fraction | None = None
    samples: int | None = None
    choosing: Fraction | None = None
    low: Fraction | None = None
    high: Fraction | None = None
    irregular: int | None = None
    max_rate: Fraction | None = None
    origin: SampleOrigin | None = None
    rho: Fraction | None = None


@dataclass(frozen=True, kw_only=True)
class PurePrivacy(Private):
    """ε-differential privacy."""

    kind = "pure differential privacy"

    @property
    def sentence(self) -> str:
        return f"{_ratio(self.unit)}."


@dataclass(frozen=True, kw_only=True)
class ApproximatePrivacy(Private):
    """(ε, δ)-differential privacy."""

    kind = "approximate differential privacy"

    delta: Fraction

    @property
    def sentence(self) -> str:
        return f"{_ratio(self.unit)}, plus δ."


@dataclass(frozen=True, kw_only=True)
class SampledCrowd(Claim):
    """What is claimed about a secret sample: its crowd, its rate, ε and δ."""

    k: int
    rate: Fraction
    epsilon: Decimal
    noise: str | None = None


@dataclass(frozen=True, kw_only=True)
class ZeroKnowledge(SampledCrowd):
    """Zero-knowledge with respect to a random sample of everyone else."""

    kind = "zero-knowledge with respect to random sampling"
    sentence = (
        "What the release shows about a person can be simulated, up to (ε, δ), from a random sample of everyone else: "
        "every set of outcomes has at most e^ε times the simulated probability, plus δ, and the reverse."
    )
    rank: ClassVar[int] = 10
    numbers: ClassVar[Mapping[str, str]] = {"epsilon": "epsilon"}

    delta: Fraction


@dataclass(frozen=True, kw_only=True)
class PublishedTheorem(SampledCrowd):
    """The closed form of Li, Qardaji & Su's Theorem 1 at the same ε."""

    kind = "approximate differential privacy, as published"
    sentence = "The first claim at the same ε by the published formula: its δ is equal or larger."
    rank: ClassVar[int] = 12
    restates: ClassVar[bool] = True
    numbers: ClassVar[Mapping[str, str]] = {"epsilon": "epsilon", "delta": "delta of theorem 1"}

    delta: float


@dataclass(frozen=True, kw_only=True)
class Smooth(SampledCrowd):
    """f-smooth differential privacy, Theorem 6 of the same paper."""

    kind = "f-smooth differential privacy"
    sentence = "The first claim at the same ε by the paper's closed formula: its δ is equal or larger."
    rank: ClassVar[int] = 13
    restates: ClassVar[bool] = True
    numbers: ClassVar[Mapping[str, str]] = {"epsilon": "epsilon", "delta": "delta of theorem 6"}

    delta: float


@dataclass(frozen=True, kw_only=True)
class Surveyed(Claim):
    """What is claimed about a biased sample: its crowd, its rates, and where it was drawn."""

    k: int
    low: Fraction
    high: Fraction
    irregular: int
    max_rate: Fraction
    origin: SampleOrigin


@dataclass(frozen=True, kw_only=True)
class RobustZeroKnowledge(Surveyed):
    """Zero-knowledge with respect to a biased sample of everyone else."""

    kind = "zero-knowledge with respect to robust sampling"
    sentence = (
        "What the release shows about a person can be simulated, up to (ε, δ), from a biased random sample of everyone "
        "else, part of which is known: every set of outcomes has at most e^ε times the simulated probability, plus δ, "
        "and the reverse."
    )
    rank: ClassVar[int] = 10
    numbers: ClassVar[Mapping[str, str]] = {"epsilon": "epsilon"}

    delta: Fraction
    epsilon: Decimal


@dataclass(frozen=True, kw_only=True)
class RobustTheorem(Surveyed):
    """The closed form of Gehrke, Hay, Lui & Pass' Theorem 2."""

    kind = "zero-knowledge with respect to robust sampling, as published"
    sentence = (
        "Zero-knowledge by the published formula, with its constants written out: its ε and δ are those of the paper."
    )
    rank: ClassVar[int] = 11
    restates: ClassVar[bool] = True
    numbers: ClassVar[Mapping[str, str]] = {"epsilon": "epsilon of theorem 2", "delta": "delta of theorem 2"}

    delta: float
    epsilon: float


@dataclass(frozen=True, kw_only=True)
class Concentrated(Claim):
    """Zero-concentrated differential privacy, charged to an account that was carved out of the budget before."""

    kind = "zero-concentrated differential privacy"
    rank: ClassVar[int] = 0

    rho: Fraction
    adjacency: Adjacency
    max_rows: int

    @property
    def sentence(self) -> str:
        return (
            f"{neighbors(self.unit)}: for every order α > 1, the Rényi divergence of the two outcome distributions is "
            "at most ρα."
        )


SHARED_VALUE = Exposure("shared-value", "an equivalence class whose members share a sensitive value discloses it")
SPLIT = Exposure("classes-split", "a second release, or background knowledge, can split classes")
FEWER_PEOPLE = Exposure("fewer-people", "k counts rows: a class may hold as few people as `people` states")
RECOUNTED = Condition("recounted", "the written output was recounted")
_KEY = Assumption("pseudonym-key-secret", "the key is stored apart, and nobody who receives the release knows it")
_COUNTED_TUPLES = Theorem("counted-tuples", "counted: every tuple over all released columns occurs at least k times")
_KEYED_PSEUDONYMS = Theorem(
    "keyed-pseudonyms", "HMAC-SHA-256: without the key, a pseudonym reveals nothing about its value"
)
_KEY_HOLDERS = Exposure(
    "key-holders", "people who have the key, or can have values pseudonymized, can re-identify the pseudonyms"
)
_LINKED_PSEUDONYMS = Exposure(
    "linked-pseudonyms", "rows of one value are linked, here and in every release made with the same key"
)


def blended(epsilon: Fraction) -> str:
    """Return the sentence of (k, ε)-crowd-blending.

    >>> blended(Fraction(0)).startswith("Everyone is one of at least k people whose data are interchangeable")
    True
    """
    factor = " by more than the factor e^ε" if epsilon else ""
    return (
        "Everyone is one of at least k people whose data are interchangeable: replacing one's data by another's "
        f"changes the probability of no set of outcomes{factor}. Or else removing that person's data changes no such "
        f"probability{factor}."
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
        return blended(self.epsilon)


@dataclass(frozen=True, kw_only=True)
class Anonymity(Claim):
    """k-anonymity: no published combination of values is rare."""

    kind = "k-anonymity"
    sentence = "Each published combination of values in the named columns occurs at least k times."
    rank: ClassVar[int] = 30

    k: int
    columns: tuple[str, ...]
    people: int | None = None
    tables: int | None = None


@dataclass(frozen=True, kw_only=True)
class Pseudonymity(Claim):
    """Identifiers are replaced by keyed pseudonyms: a property of form, and no more."""

    kind = "pseudonymization"
    sentence = "Values of these columns are replaced by codes that only someone with the key can compute."
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
        not_protected=(_KEY_HOLDERS, _LINKED_PSEUDONYMS),
    )
    return (claim,)
