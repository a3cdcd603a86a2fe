"""Privacy: claims that bound what anyone can learn about one unit, whatever they know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

from incrowd.core.claims.claim import Claim, Precondition, Status, checked
from incrowd.core.terms import Assumption, Condition, Exposure, Theorem
from incrowd.core.unit import Adjacency, Kind, Unit


def beside(unit: Unit) -> str:
    """Return which two tables must look alike, or which two graphs, for people.

    >>> beside(Unit(adjacency=Adjacency.REPLACE))
    'Compare any two tables that differ by this: one row, replaced.'
    >>> beside(Unit(Kind.NODE))
    'Compare any two graphs that differ by this: one node with all its edges, added or removed.'
    """
    if unit.kind.of_edges:
        return f"Compare any two graphs on the same nodes that differ by this: {unit}."
    if unit.kind is Kind.NODE:
        words = str(unit).replace("one node", "one node with all its edges", 1)
        return f"Compare any two graphs that differ by this: {words}."
    return f"Compare any two tables that differ by this: {unit}."


@dataclass(frozen=True, kw_only=True)
class Private(Claim):
    """Differential privacy: the numbers that the guarantee hangs on, and for whom it holds."""

    rank: ClassVar[int] = 0
    numbers: ClassVar[Mapping[str, str]] = {"epsilon": "epsilon"}

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
    drawn: str | None = None
    rho: Fraction | None = None


@dataclass(frozen=True, kw_only=True)
class PurePrivacy(Private):
    """ε-differential privacy."""

    kind = "pure differential privacy"

    @property
    def sentence(self) -> str:
        """What is claimed, for people."""
        return (
            f"{beside(self.unit)} Every outcome is as likely from one as from the other within the factor e^ε, always."
        )


@dataclass(frozen=True, kw_only=True)
class ApproximatePrivacy(Private):
    """(ε, δ)-differential privacy."""

    kind = "approximate differential privacy"

    delta: Fraction

    @property
    def sentence(self) -> str:
        """What is claimed, for people."""
        return (
            f"{beside(self.unit)} Every outcome is as likely from one as from the other within the factor e^ε, apart "
            "from a chance of δ."
        )


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
        "What the release shows about a person could be had nearly as well from a random sample of everyone else: "
        "every outcome is as likely within the factor e^ε, apart from a chance of δ."
    )
    rank: ClassVar[int] = 10
    numbers: ClassVar[Mapping[str, str]] = {"epsilon": "epsilon"}

    delta: Fraction


@dataclass(frozen=True, kw_only=True)
class PublishedTheorem(SampledCrowd):
    """The closed form of Li, Qardaji & Su's Theorem 1 at the same ε."""

    kind = "approximate differential privacy, as published"
    sentence = (
        "The first claim by the formula as it was published: its δ is no smaller, and can be checked against the paper."
    )
    rank: ClassVar[int] = 12
    numbers: ClassVar[Mapping[str, str]] = {"epsilon": "epsilon", "delta": "delta of theorem 1"}

    delta: float


@dataclass(frozen=True, kw_only=True)
class Smooth(SampledCrowd):
    """f-smooth differential privacy, Theorem 6 of the same paper."""

    kind = "f-smooth differential privacy"
    sentence = "The first claim by the paper's closed formula, whose δ is no smaller either."
    rank: ClassVar[int] = 13
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
    drawn: str


@dataclass(frozen=True, kw_only=True)
class RobustZeroKnowledge(Surveyed):
    """Zero-knowledge with respect to a biased sample of everyone else."""

    kind = "zero-knowledge with respect to robust sampling"
    sentence = (
        "What the release shows about a person could be had nearly as well from a biased random sample of everyone "
        "else, part of which is known: every outcome is as likely within the factor e^ε, apart from a chance of δ."
    )
    rank: ClassVar[int] = 10
    numbers: ClassVar[Mapping[str, str]] = {"epsilon": "epsilon"}

    delta: Fraction
    epsilon: Decimal


@dataclass(frozen=True, kw_only=True)
class RobustTheorem(Surveyed):
    """The closed form of Gehrke, Hay, Lui & Pass' Theorem 2."""

    kind = "zero-knowledge with respect to robust sampling, as published"
    sentence = "The claim before by the formula as it was published, with its constants written out."
    rank: ClassVar[int] = 11
    numbers: ClassVar[Mapping[str, str]] = {"epsilon": "epsilon of theorem 2", "delta": "delta of theorem 2"}

    delta: float
    epsilon: float


@dataclass(frozen=True, kw_only=True)
class Concentrated(Claim):
    """Zero-concentrated differential privacy, paid from what was carved out before."""

    kind = "zero-concentrated differential privacy"
    rank: ClassVar[int] = 0

    rho: Fraction
    adjacency: Adjacency
    max_rows: int

    @property
    def sentence(self) -> str:
        """What is claimed, for people."""
        return f"{beside(self.unit)} Outcomes are nearly as likely from one as from the other, by an average over them."


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
