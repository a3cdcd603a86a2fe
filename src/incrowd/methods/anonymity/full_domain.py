"""Full domain: of all ways to generalize whole columns, the one that loses least and keeps everyone in a class."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, Literal

import numpy as np

from incrowd.core.cells import Cells
from incrowd.core.coins import Coins
from incrowd.core.counts import Counts
from incrowd.core.plan import Plan
from incrowd.core.schema import Schema
from incrowd.core.steps.rows import Arrange, keep_rows, recode
from incrowd.core.steps.step import Step, fold
from incrowd.core.table import Engine, Table
from incrowd.core.words import counted
from incrowd.criteria.criterion import All
from incrowd.criteria.partition import Partition
from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.search.lattice import Lattice, LevelLimits, LevelSearch, Task
from incrowd.methods.anonymity.search.optimal import SearchLimits, SearchResult, optimal
from incrowd.methods.anonymity.shared.classes import ClassesPicture, check_of_cut
from incrowd.methods.anonymity.shared.demands import Demands, Population, Sensitive, Unique, quasi_identifiers
from incrowd.methods.anonymity.shared.steps import CutWithoutSome
from incrowd.methods.shared.columns import released_cells, row_limits
from incrowd.methods.shared.microdata import Generalized, occurring_values
from incrowd.quality.additive import Height, Loss, Precision, WeightedQuality
from incrowd.quality.information import Divergence, NonUniformEntropy
from incrowd.quality.quality import AverageSize, Discernibility, Quality


@dataclass(frozen=True, kw_only=True)
class CutLevels(CutWithoutSome):
    """Each quasi-identifier is shown at one level, found by a search; some rows may be left out.

    `quality` names what is lost least at the levels that are taken, among so many `combinations`.
    """

    quality: str
    combinations: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.combinations < 1:
            raise InvalidParameter("levels are taken among at least one combination.")

    @property
    def where(self) -> str:
        return f"the levels with the least {self.quality} among {counted(self.combinations, 'combination')}"

    @property
    def labels(self) -> str:
        return "hierarchy labels"


_QUALITIES: dict[str, type[Quality]] = {
    "loss": Loss,
    "precision": Precision,
    "height": Height,
    "discernibility": Discernibility,
    "average-size": AverageSize,
    "entropy": NonUniformEntropy,
    "divergence": Divergence,
}


@dataclass(frozen=True)
class FullDomain(LevelSearch):
    """The optimal generalization of whole columns under k-anonymity, and perhaps more, with a limit on suppression.

    Guarantee: every combination of the quasi-identifiers in the output occurs at least k times; every class also meets
    whatever else is demanded, of all or of single sensitive columns, against a population, or of all classes together;
    and no other combination of levels that meets this loses less.  These are properties of the output's form.  Nothing
    else is guaranteed and there is no ε: the levels were found by looking at all rows, and sensitive columns stay as
    they are.

    Assumes: people can be looked up by the quasi-identifiers and by no other column; one row is one person, or the
    person column says whose it is.

    Source: Samarati 2001 and LeFevre, DeWitt & Ramakrishnan 2005 for full-domain generalization; Iyengar 2002 for the
    loss; what a class must meet is said, with its source, at `Sensitive`, `Population` and `Unique`.

    >>> FullDomain(5, l=3, suppression=Fraction(1, 20)).demands.terms()
    {'k': 5, 'l': 3}
    """

    name: ClassVar[str] = "full-domain"

    k: int
    l: int | None = None  # noqa: E741 (the name that everyone knows it by)
    entropy_l: Fraction | None = None
    t: Fraction | None = None
    sensitive: Mapping[str, Sensitive] = field(default_factory=dict)
    population: Population | None = None
    average_risk: Fraction | None = None
    unique: Unique | None = None
    suppression: Fraction = Fraction(0)
    quality: Literal["loss", "precision", "height", "discernibility", "average-size", "entropy", "divergence"] = "loss"
    importance: Mapping[str, Fraction] = field(default_factory=dict)
    lowest: Mapping[str, int] = field(default_factory=dict)
    highest: Mapping[str, int] = field(default_factory=dict)
    levels: Mapping[str, int] = field(default_factory=dict)
    seconds: Fraction | None = None

    def __post_init__(self) -> None:
        self.demands.check()
        if not 0 <= self.suppression <= 1:
            raise InvalidParameter("suppression is the share of rows that may be left out, from 0 to 1.")
        presence = None if self.population is None else self.population.presence
        if presence is not None and presence.least > 0 and self.suppression:
            raise InvalidParameter(
                "a suppressed class shows that its people are absent: with presence.least, suppression is 0."
            )
        if self.quality not in _QUALITIES:
            raise InvalidParameter(f"quality is one of {', '.join(_QUALITIES)}, not {self.quality!r}.")
        if self.importance and not issubclass(_QUALITIES[self.quality], WeightedQuality):
            raise InvalidParameter("the importance of columns counts for loss and precision only: leave it out.")
        if self.seconds is not None and self.seconds <= 0:
            raise InvalidParameter("a search needs some time: seconds must be positive.")

    @property
    def demands(self) -> Demands:
        """What every class must meet."""
        return Demands(
            self.k,
            self.l,
            self.entropy_l,
            self.t,
            levels=self.levels,
            sensitive=self.sensitive,
            average_risk=self.average_risk,
            unique=self.unique,
            population=self.population,
        )

    def combinations(self, schema: Schema) -> int:
        """Return how many combinations of levels there are to search."""
        limits = self._limits
        spans = []
        for name in quasi_identifiers(schema):
            low, high = limits.of(name)
            spans.append((schema[name].hierarchy.height if high is None else high) - low + 1)
        return math.prod(spans)

    def cells(self, schema: Schema) -> Cells:
        quasi = quasi_identifiers(schema)
        for name in (*self.lowest, *self.highest, *self.importance):
            if name not in quasi:
                raise InvalidParameter(f"{name!r} is not a quasi-identifier: its levels are not searched.")
        for name in self.levels:
            if name in quasi:
                raise InvalidParameter(f"the level of {name!r} is searched for: bound it with lowest and highest.")
        for name in quasi:
            low, high = self._limits.of(name)
            height = schema[name].hierarchy.height
            if not 0 <= low <= (height if high is None else high) <= height:
                raise InvalidParameter(f"the levels of {name!r} run from 0 to {height}, lowest not above highest.")
        return released_cells(schema, {**self.lowest, **self.levels})

    def plan(self, schema: Schema) -> Plan:
        steps = self.steps(schema)
        if self.population is not None:
            self.population.check(self._people(schema))
        settings = {
            **self.demands.spelled(),
            "suppression": self.suppression,
            "combinations": self.combinations(schema),
        }
        guarantee, cells = fold(steps, schema.unit), self.cells(schema)
        return Plan(self.name, steps, guarantee, {}, self.release, self.k, settings, cells=cells)

    def steps(self, schema: Schema) -> tuple[Step, ...]:
        """Return the steps: whose rows, which finest levels, which search, which order."""
        recoded = recode(self.cells(schema))
        cut = CutLevels(
            **self.demands.demanded(schema),
            quality=self.quality,
            combinations=self.combinations(schema),
            suppression=self.suppression,
        )
        return (*keep_rows(schema.unit), recoded, cut, Arrange())

    def release(self, table: Table, coins: Coins) -> Generalized:
        """Count the rows of each tuple in one pass, search the levels on the counts, and leave small classes out."""
        schema = table.schema
        counts = table.engine.count(table.rows, self.cells(schema), *row_limits(table, coins))
        return self.generalized(counts, schema, self.people(table.engine, schema))

    def search(self, counts: Counts, schema: Schema, people: Counts | None = None) -> SearchResult:
        """Return the best levels of counts at their finest, and every point that was judged on the way.

        `people` are the counts of the population at the same levels, where something is demanded against it.
        """
        patience = SearchLimits(math.inf if self.seconds is None else float(self.seconds))
        return optimal(self.lattice(counts, schema, people), self.task(schema), patience)

    def lattice(self, counts: Counts, schema: Schema, people: Counts | None = None) -> Lattice:
        lattice = Lattice.of(counts, quasi_identifiers(schema), self.demands.about(schema), self._limits)
        return lattice if people is None else lattice.with_population(people)

    def task(self, schema: Schema) -> Task:
        return Task(All(tuple(self.demands.criteria(schema))), self._quality, self.suppression)

    def people(self, engine: Engine, schema: Schema) -> Counts | None:
        return None if self.population is None else self.population.counted(engine, self._people(schema))

    def generalized(self, counts: Counts, schema: Schema, people: Counts | None = None) -> Generalized:
        """Return the table at the best levels; without rows if no combination of levels meets the demands."""
        quasi, result = quasi_identifiers(schema), self.search(counts, schema, people)
        levels = result.levels or {name: schema[name].hierarchy.height for name in quasi}
        rolled = counts.rollup(levels)
        partition = Partition.of(rolled, quasi, self.demands.about(schema))
        classes = rolled.marginal(quasi)
        if people is not None:
            partition = partition.with_population(classes, people.rollup(levels))
        met = All(tuple(self.demands.criteria(schema))).met(partition)
        places = rolled.marginal([*quasi, *(name for name in rolled.names if name not in quasi)])
        owners = np.repeat(np.arange(len(classes)), _tuples_in(places, classes, len(quasi)))
        released = np.flatnonzero(met[owners] if result.best is not None else np.zeros(len(places), np.bool_))
        codes = dict(zip(places.names, places.codes(), strict=True))
        columns = {
            name: occurring_values(column.values(), codes[name][released])
            for name, column in zip(rolled.names, rolled.classes, strict=True)
        }
        return Generalized.of(columns, places.counts[released], quasi, levels=levels)

    @property
    def _limits(self) -> LevelLimits:
        return LevelLimits(self.lowest, self.highest)

    def _people(self, schema: Schema) -> Cells:
        """Return the cells in which a population is counted: the quasi-identifiers at their lowest levels."""
        return Cells.of(schema, self.lowest, quasi_identifiers(schema))

    @property
    def _quality(self) -> Quality:
        kind = _QUALITIES[self.quality]
        return kind(weights=self.importance) if issubclass(kind, WeightedQuality) else kind()


def _tuples_in(places: Counts, classes: Counts, columns: int) -> np.ndarray[Any, np.dtype[np.intp]]:
    """Return how many tuples each class has; both are in the order of the same columns."""
    from incrowd.criteria.groups import class_starts

    starts = class_starts(places, columns)
    if len(starts) != len(classes):
        raise AssertionError("classes and tuples are counted over the same columns")
    return np.diff(np.append(starts, len(places)))


CHECK = check_of_cut(CutLevels)
PICTURE = ClassesPicture()
METHOD = FullDomain
