"""Privacy: claims that bound what anyone can learn about one unit, whatever they know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

from incrowd.core.claims.claim import Claim
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
