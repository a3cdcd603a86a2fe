"""Criteria: what a check can require of a table, how it is measured, and the findings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.core.counts import Counts
from incrowd.core.domain import Type
from incrowd.core.hierarchy.hierarchy import TOP, end_value
from incrowd.core.keys import Codes
from incrowd.core.reading import read
from incrowd.core.recoding import Recoding
from incrowd.core.rounding import exact
from incrowd.criteria.average_risk import AverageRisk
from incrowd.criteria.catalog import OF_COLUMN
from incrowd.criteria.closeness import CLOSENESS, Closeness
from incrowd.criteria.demand import ColumnDemand, TableDemand
from incrowd.criteria.groups import Groups
from incrowd.criteria.k_anonymity import KAnonymity
from incrowd.criteria.measure import Meaning, Measured, measured
from incrowd.criteria.partition import Partition, harmful, lifts
from incrowd.errors import InvalidParameter
from incrowd.measures.risk.classes import Sizes
from incrowd.methods.anonymity.shared.demands import Demands, Distance, Population, Sensitive, Unique

_ORDERED = (Type.INTEGER, Type.DECIMAL, Type.DATE)
_CELLS = 2**19  # of groups at a time: some megabytes
_MET_BY_ALL = 1
"""The l, and the t, that every class meets."""


@dataclass(frozen=True)
class CheckCriteria:
    """What is required of a table; where it is None, the value may be reported but does not decide.

    k, l, entropy_l, t and `sensitive` apply to every sensitive column, `columns` to single ones where nothing applies
    to all.

    >>> CheckCriteria(k=5, t=0.2).any
    True
    """

    k: int | None = None
    l: int | None = None  # noqa: E741 - the letter of the paper
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
                raise InvalidParameter(f"{name} must be at least 1; with 1, every table passes.")
        if self.t is not None and not 0 <= self.t <= 1:
            raise InvalidParameter("t must lie between 0 (every class is like the whole table) and 1.")
        if self.average_risk is not None and not 0 < self.average_risk <= 1:
            raise InvalidParameter("the average risk must be above 0 and at most 1.")

    @property
    def any(self) -> bool:
        """Whether anything is required."""
        others = (self.k, self.average_risk, self.unique, self.population)
        return self.about_sensitive or any(number is not None for number in others)

    @property
    def about_sensitive(self) -> bool:
        """Whether something is required of every sensitive column."""
        return self._general.any

    def of(self, column: str) -> Sensitive:
        """Return what is required of one sensitive column."""
        return self._general.or_else(self.columns.get(column, Sensitive()))

    def and_of(self, demands: Demands, sensitive: tuple[str, ...]) -> CheckCriteria:
        """Return the same requirements, completed by those of a policy."""
        return replace(
            self,
            k=demands.k if self.k is None else self.k,
            columns={name: demands.of(name) for name in sensitive},
            average_risk=demands.average_risk if self.average_risk is None else self.average_risk,
            unique=demands.unique if self.unique is None else self.unique,
            population=demands.population if self.population is None else self.population,
        )

    def table_demands(self) -> list[TableDemand]:
        """Return the requirements on all classes together, or against a population."""
        average: list[TableDemand] = [] if self.average_risk is None else [AverageRisk(self.average_risk)]
        unique = [] if self.unique is None else [self.unique.criterion()]
        return [*average, *unique, *([] if self.population is None else self.population.criteria())]

    @property
    def _general(self) -> Sensitive:
        entropy, t = (None if number is None else exact(number) for number in (self.entropy_l, self.t))
        return Sensitive(l=self.l, entropy_l=entropy, t=t).or_else(self.sensitive)


@dataclass(frozen=True)
class CriterionFinding:
    """A value measured over some columns, and perhaps of a sensitive one.

    A table without rows has no value, and then nothing fails.
    """

    measured: Measured
    over: tuple[str, ...]
    sensitive: str | None = None

    @property
    def criterion(self) -> str:
        """The name of the criterion."""
        return self.measured.meaning.name

    @property
    def expected(self) -> float | None:
        """The required value; None: none."""
        return self.measured.expected

    @property
    def value(self) -> float | None:
        """The measured value; None without rows."""
        return self.measured.value

    @property
    def short(self) -> int | None:
        """How many rows do not meet it; None where nothing is required, or where that is not counted."""
        return self.measured.short

    @property
    def passed(self) -> bool | None:
        """Whether the value meets the requirement; None without one."""
        return self.measured.passed

    def to_json(self) -> dict[str, Any]:
        """Return the values for JSON."""
        return {
            "criterion": self.criterion,
            "over": self.over,
            "sensitive": self.sensitive,
            "expected": self.expected,
            "found": self.value,
            "short": self.short,
            "passed": self.passed,
            "means": self.measured.meaning.means,
        }


@dataclass(frozen=True)
class Declared:
    """A sensitive column in a policy: its type, and its values at the level of the release."""

    type: Type | None = None
    recoding: Recoding | None = None


@dataclass(frozen=True)
class ValueDistances:
    """A distance of values, and how groups are prepared to measure it."""

    distance: Distance
    prepared: Callable[[Groups], Groups] = lambda groups: groups


def parts_of(groups: Groups, cells: int = _CELLS) -> Iterator[tuple[Groups, int]]:
    """Yield some of the groups at a time, with their number; the rest of the table is one group more.

    So every part has the shares of the whole table, and its measures take little memory.

    >>> sick = Groups(np.array([0, 2]), np.array([0, 1, 1]), np.array([3, 1, 4]), pa.array(["flu", "gout"]))
    >>> [(part.counts.tolist(), part.starts.tolist(), number) for part, number in parts_of(sick, 1)]
    [([3, 1, 4], [0, 2], 1), ([4, 3, 1], [0, 1], 1)]
    """
    totals, ends = groups.totals, np.append(groups.starts, len(groups.counts))
    firsts = np.unique(np.searchsorted(groups.starts, np.arange(0, max(1, len(groups.counts)), cells)))
    firsts = np.append(firsts[firsts < len(groups.starts)], len(groups.starts))
    if len(firsts) == 1:
        yield groups, 0
    for first, last in pairwise(firsts.tolist()):
        start, stop = ends[first], ends[last]
        values, counts = groups.values[start:stop], groups.counts[start:stop]
        rest = totals - np.bincount(values, counts, len(totals)).astype(np.int64)
        left = np.flatnonzero(rest).astype(np.int32)
        starts = groups.starts[first:last] - start
        yield (
            Groups(
                np.append(starts, stop - start) if len(left) else starts,
                np.concatenate([values, left]),
                np.concatenate([counts, rest[left]]),
                groups.labels,
                groups.lifts,
            ),
            last - first,
        )


def demands_on(column: str, expected: Sensitive, distance: Distance) -> Iterator[tuple[ColumnDemand, bool]]:
    """Yield the criteria measured of a column and whether they are required: the general ones always."""
    demands = {type(demand): demand for demand in expected.criteria(column, distance)}
    for kind in sorted(OF_COLUMN, key=lambda demand: not demand.general):
        criterion = CLOSENESS[distance] if kind is Closeness else kind
        if criterion in demands:
            yield demands[criterion], True
        elif kind.general:
            make: Callable[..., ColumnDemand] = criterion
            yield make(column, _MET_BY_ALL, harmless=frozenset(expected.harmless)), False


def closeness_of(labels: pa.Array, expected: Sensitive, declared: Declared, *, in_order: bool) -> ValueDistances:
    """Return the requested distance, or else that of the declared type.

    `in_order`: values were counted in the order of their type; as text, they are sorted here.
    """
    if expected.distance == "hierarchical" and declared.recoding is not None:
        above = _lifts(labels, declared.recoding)
        return ValueDistances("hierarchical", lambda groups: replace(groups, lifts=above))
    if expected.distance == "equal":
        return ValueDistances("equal")
    order = np.arange(len(labels)) if declared.type in _ORDERED and in_order else _order(labels, declared.type)
    if order is None and expected.distance == "ordered" and declared.recoding is not None:
        order = _declared_order(labels, declared.recoding)
    return ValueDistances("equal") if order is None else ValueDistances("ordered", lambda groups: groups.placed(order))


def _order(labels: pa.Array, kind: Type | None) -> NDArray[np.intp] | None:
    """Return the place of each value among numbers or days; None if they have no order, or are labels.

    Missing values come last.  The ordered distance is never above the equal one, so without a declared type the equal
    one, which is stricter, is used.
    """
    if kind is None or kind not in _ORDERED:
        return None
    if kind is Type.DATE and pa.types.is_string(labels.type):
        labels = pa.array([None if label is None else end_value(label) for label in labels.to_pylist()], pa.string())
    parsed = read(labels, kind)
    if parsed.unreadable.any():
        return None
    return _ranks(pc.array_sort_indices(parsed.values).to_numpy())


def _declared_order(labels: pa.Array, recoding: Recoding) -> NDArray[np.intp] | None:
    """Return the place of each value among the declared ones, undeclared values after them."""
    if recoding.classes is None:
        return None
    places = {label: place for place, label in enumerate(recoding.classes.labels().to_pylist())}
    return _ranks(np.argsort([places.get(label, len(places)) for label in labels.to_pylist()], kind="stable"))


def _ranks(sequence: NDArray[np.integer]) -> NDArray[np.intp]:
    places = np.empty(len(sequence), np.intp)
    places[sequence] = np.arange(len(sequence))
    return places


def _lifts(labels: pa.Array, recoding: Recoding) -> tuple[Codes, ...]:
    """Return the class of each value at each level above; each undeclared value is a class of its own."""
    if recoding.classes is None:
        return ()
    codes: Mapping[str | None, int] = {label: code for code, label in enumerate(recoding.classes.labels().to_pylist())}
    values = labels.to_pylist()
    declared = [label for label in values if label in codes]
    levels = []
    for lift in lifts(recoding.classes, np.array([codes[label] for label in declared], np.int32)):
        above = dict(zip(declared, lift.tolist(), strict=True))
        places = [above.get(label, len(codes) + place) for place, label in enumerate(values)]
        levels.append(np.unique(places, return_inverse=True)[1].astype(np.int32))
    return tuple(levels)


def crowds(
    counts: Counts, columns: Sequence[str], k: int | None, meaning: Meaning = KAnonymity.meaning
) -> CriterionFinding:
    """Return k-anonymity over some columns."""
    sizes = Sizes.of(counts, columns)
    short = None if k is None else sizes.below(k)
    return CriterionFinding(Measured(meaning, k, sizes.smallest, short), tuple(columns))


def sensitive_findings(
    counts: Counts, quasi: Sequence[str], sensitive: str, expected: Sensitive, declared: Declared
) -> list[CriterionFinding]:
    """Return diversity, closeness and likeness of one sensitive column; nothing if its only value is `*`.

    Classes with nothing but harmless values pass, except that they lack the others, which is a disclosure too.
    """
    groups = Groups.of(counts, quasi, sensitive)
    if groups.labels.to_pylist() == [TOP]:
        return []
    type_counted = counts.classes[counts.names.index(sensitive)].recoding.column.type
    scale = closeness_of(groups.labels, expected, declared, in_order=type_counted is declared.type)
    hurting = harmful(groups, frozenset(expected.harmless))
    by_name: dict[str, Measured] = {}
    for part, number in parts_of(groups):
        counted = part.total(hurting[part.values].astype(np.int64))[:number] > 0
        for demand, decisive in demands_on(sensitive, expected, scale.distance):
            values = demand.measured(scale.prepared(part) if isinstance(demand, Closeness) else part)[:number]
            which, name = counted | demand.everywhere, demand.meaning.name
            sizes = part.sizes[:number][which]
            in_part = measured(demand.meaning, values[which], sizes, demand.bound if decisive else None)
            by_name[name] = by_name[name].joined(in_part) if name in by_name else in_part
    return [CriterionFinding(total, tuple(quasi), sensitive) for total in by_name.values()]


def table_findings(partition: Partition, quasi: Sequence[str], criteria: CheckCriteria) -> Iterator[CriterionFinding]:
    """Yield the findings about all classes together, or against a population."""
    for demand in criteria.table_demands():
        for result in demand.measures(partition):
            yield CriterionFinding(result, tuple(quasi))
