"""Criteria: what may be expected of a table, what was found, and whether the one is enough for the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from types import MappingProxyType

from incrowd.core.rounding import exact
from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.demands import Demands
from incrowd.methods.anonymity.population import Population, Unique
from incrowd.methods.anonymity.sensitive import Sensitive

TOLERANCE = 1e-9
"""By so much a number may miss what was expected: sums of shares are rounded."""

COLUMNS = "columns"
CROWDS = "k-anonymity"
RELEASED = "k-anonymity, all released columns"
SUBSETS = "k-anonymity of subsets"
DISTINCT = "distinct l-diversity"
ENTROPY = "entropy l-diversity"
RECURSIVE = "recursive (c,l)-diversity"
EQUAL = "t-closeness"
ORDERED = "t-closeness, ordered"
HIERARCHICAL = "t-closeness, hierarchical"
LIKENESS = "β-likeness"
ENHANCED = "enhanced β-likeness"
DISCLOSURE = "δ-disclosure privacy"
MAPPED = "k-map"
LEAST_PRESENCE = "δ-presence, at least"
MOST_PRESENCE = "δ-presence, at most"
AVERAGE = "average risk"
UNIQUE = "population uniqueness"
ITEMS = "k^m-anonymity"
MEANS: Mapping[str, str] = MappingProxyType(
    {
        COLUMNS: "how many columns are there that must not be: identifiers, and what the policy does not declare",
        CROWDS: "the fewest rows that share their quasi-identifiers",
        RELEASED: "the fewest rows that share everything that is released",
        SUBSETS: "the fewest rows that share their values in some of their quasi-identifiers, so many at a time",
        DISTINCT: "the fewest different sensitive values among rows that share their quasi-identifiers",
        ENTROPY: "the same, where rare values count less: e to the least entropy",
        RECURSIVE: "how often the most frequent sensitive value occurs among such rows, over what is left without it "
        "and the l − 2 most frequent others, at most; c must be above it",
        EQUAL: "how far the sensitive column among rows that share their quasi-identifiers is from the whole table, at "
        "most; any two values are equally far apart",
        ORDERED: "how far it is from the whole table, at most; neighboring numbers, days or categories are close",
        HIERARCHICAL: "how far it is from the whole table, at most; values under one label are close",
        LIKENESS: "by what factor beyond 1 a sensitive value is more frequent among such rows than in the whole table, "
        "at most",
        ENHANCED: "by what factor beyond 1 a sensitive value is more frequent among such rows, at most; without limit "
        "where that is above −ln of the value's share in the whole table",
        DISCLOSURE: "how large the binary logarithm of a value's share among such rows over its share in the whole "
        "table is, up or down, at most; without limit where such rows lack a value that the table has; δ must be above "
        "it",
        MAPPED: "the fewest people of the population who share the quasi-identifiers of a row",
        LEAST_PRESENCE: "the share of people with the same quasi-identifiers who are in the table, at least",
        MOST_PRESENCE: "the share of people with the same quasi-identifiers who are in the table, at most",
        AVERAGE: "the mean over rows of one over the number of rows that share their quasi-identifiers",
        UNIQUE: "the estimated share of rows that are alone with their quasi-identifiers in the population",
        ITEMS: "the fewest rows that share a combination of at most m items, and their other quasi-identifiers",
    }
)
"""Every criterion, with its meaning."""


class Bound(StrEnum):
    """How what was found must stand to what was expected."""

    AT_LEAST = "at least"
    AT_MOST = "at most"
    BELOW = "below"


_AT_LEAST = (CROWDS, RELEASED, SUBSETS, DISTINCT, ENTROPY, MAPPED, LEAST_PRESENCE, ITEMS)
_BELOW = (RECURSIVE, DISCLOSURE)


def bound_of(criterion: str) -> Bound:
    """Return how a criterion bounds what it measures.

    >>> str(bound_of(EQUAL))
    'at most'
    """
    return Bound.AT_LEAST if criterion in _AT_LEAST else Bound.BELOW if criterion in _BELOW else Bound.AT_MOST


@dataclass(frozen=True)
class Wanted:
    """What is expected of a table; None is told where it is measured anyway, but decides nothing.

    k, l, entropy_l, t and `sensitive` are wanted of every sensitive column, `columns` of single ones where nothing else
    is wanted of all.

    >>> Wanted(k=5, t=0.2).any
    True
    """

    k: int | None = None
    l: int | None = None  # noqa: E741 (the name that everyone knows it by)
    entropy_l: float | None = None
    t: float | None = None
    sensitive: Sensitive = field(default_factory=Sensitive)
    columns: Mapping[str, Sensitive] = field(default_factory=dict)
    average_risk: Fraction | None = None
    unique: Unique | None = None
    population: Population | None = None

    def __post_init__(self) -> None:
        for name, least in (("k", self.k), ("l", self.l), ("entropy-l", self.entropy_l)):
            if least is not None and least < 1:
                raise InvalidParameter(f"{name} is at least 1: with 1, every table passes.")
        if self.t is not None and not 0 <= self.t <= 1:
            raise InvalidParameter("t lies between 0 (every group is like the whole table) and 1.")
        if self.average_risk is not None and not 0 < self.average_risk <= 1:
            raise InvalidParameter("an average risk lies above 0 and at most at 1.")

    @property
    def any(self) -> bool:
        """Whether anything is expected at all."""
        others = (self.k, self.average_risk, self.unique, self.population)
        return self.about_sensitive or any(each is not None for each in others)

    @property
    def about_sensitive(self) -> bool:
        """Whether something is expected of every sensitive column."""
        return self._general.any

    def of(self, column: str) -> Sensitive:
        """Return what is expected of one sensitive column."""
        return self._general.or_else(self.columns.get(column, Sensitive()))

    def and_of(self, demands: Demands, sensitive: tuple[str, ...]) -> Wanted:
        """Return the same expectations, and those of a policy where there is none here."""
        return replace(
            self,
            k=demands.k if self.k is None else self.k,
            columns={name: demands.of(name) for name in sensitive},
            average_risk=demands.average_risk if self.average_risk is None else self.average_risk,
            unique=demands.unique if self.unique is None else self.unique,
            population=demands.population if self.population is None else self.population,
        )

    @property
    def _general(self) -> Sensitive:
        entropy, t = (None if each is None else exact(each) for each in (self.entropy_l, self.t))
        return Sensitive(l=self.l, entropy_l=entropy, t=t).or_else(self.sensitive)


@dataclass(frozen=True)
class Finding:
    """One criterion over some columns: what was expected (None: nothing), what was found, how many rows fall short.

    Nothing is found in a table without rows, and then nothing fails.
    """

    criterion: str
    over: tuple[str, ...]
    sensitive: str | None
    expected: float | None
    found: float | None
    short: int | None

    @property
    def means(self) -> str:
        """What is measured, in words."""
        return MEANS[self.criterion]

    @property
    def bound(self) -> Bound:
        """How what was found must stand to what was expected."""
        return bound_of(self.criterion)

    @property
    def passed(self) -> bool | None:
        """Whether what was found is what was expected; None where nothing was."""
        if self.expected is None or self.found is None:
            return None if self.expected is None else True
        return bool(fits(self.criterion, self.found, self.expected))


def fits(criterion: str, found: float, expected: float) -> bool:
    """Return whether a number, or each of several, is what a criterion expects.

    >>> fits(EQUAL, 0.2, 0.2), fits(DISCLOSURE, 2.0, 2.0), fits(CROWDS, 4, 5)
    (True, False, False)
    """
    match bound_of(criterion):
        case Bound.AT_LEAST:
            return found >= expected * (1 - TOLERANCE)
        case Bound.AT_MOST:
            return found <= expected + TOLERANCE
        case Bound.BELOW:
            return found < expected * (1 - 1e-12)
