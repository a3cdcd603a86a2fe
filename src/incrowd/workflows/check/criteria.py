"""Criteria: what may be expected of a table, and what was found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from incrowd.core.rounding import exact
from incrowd.criteria.average_risk import AverageRisk
from incrowd.criteria.demand import TableDemand
from incrowd.criteria.measure import Measured
from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.syntactic.demands import Demands
from incrowd.methods.anonymity.syntactic.population import Population, Unique
from incrowd.methods.anonymity.syntactic.sensitive import Sensitive


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

    def table_demands(self) -> list[TableDemand]:
        """Return what is expected of all classes together, or against a population."""
        average: list[TableDemand] = [] if self.average_risk is None else [AverageRisk(self.average_risk)]
        unique = [] if self.unique is None else [self.unique.criterion()]
        return [*average, *unique, *([] if self.population is None else self.population.criteria())]

    @property
    def _general(self) -> Sensitive:
        entropy, t = (None if each is None else exact(each) for each in (self.entropy_l, self.t))
        return Sensitive(l=self.l, entropy_l=entropy, t=t).or_else(self.sensitive)


@dataclass(frozen=True)
class CriterionFinding:
    """What was measured over some columns, and perhaps of a sensitive one.

    Nothing is found in a table without rows, and then nothing fails.
    """

    measured: Measured
    over: tuple[str, ...]
    sensitive: str | None = None

    @property
    def criterion(self) -> str:
        """The name of what was measured."""
        return self.measured.meaning.name

    @property
    def means(self) -> str:
        """What is measured, in words."""
        return self.measured.meaning.means

    @property
    def expected(self) -> float | None:
        """What was expected; None: nothing."""
        return self.measured.expected

    @property
    def found(self) -> float | None:
        """What was found; None: there are no rows."""
        return self.measured.found

    @property
    def short(self) -> int | None:
        """How many rows fall short; None where nothing was expected, or where that is not counted."""
        return self.measured.short

    @property
    def passed(self) -> bool | None:
        """Whether what was found is what was expected; None where nothing was."""
        return self.measured.passed

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        names = ("criterion", "over", "sensitive", "expected", "found", "short", "passed", "means")
        return {name: getattr(self, name) for name in names}
