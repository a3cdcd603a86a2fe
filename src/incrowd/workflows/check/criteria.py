"""Criteria: what may be expected of a table, what is measured of it, and what was found."""

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
from incrowd.measures.risk.sizes import Sizes
from incrowd.methods.anonymity.syntactic.demands import Demands
from incrowd.methods.anonymity.syntactic.population import Population, Unique
from incrowd.methods.anonymity.syntactic.sensitive import Distance, Sensitive

_ORDERED = (Type.INTEGER, Type.DECIMAL, Type.DATE)
_CELLS = 2**19
_MET_BY_ALL = 1
"""The l, and the t, that every class meets."""


@dataclass(frozen=True)
class CheckCriteria:
    """What is expected of a table; None is told where it is measured anyway, but decides nothing.

    k, l, entropy_l, t and `sensitive` are wanted of every sensitive column, `columns` of single ones where nothing else
    is wanted of all.

    >>> CheckCriteria(k=5, t=0.2).any
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

    def and_of(self, demands: Demands, sensitive: tuple[str, ...]) -> CheckCriteria:
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


@dataclass(frozen=True)
class Declared:
    """What a policy says of a sensitive column: its type, and its values at the level at which it is released."""

    type: Type | None = None
    recoding: Recoding | None = None


@dataclass(frozen=True)
class ValueDistances:
    """How far values are apart, and how groups are prepared so that this can be measured."""

    distance: Distance
    prepared: Callable[[Groups], Groups] = lambda groups: groups


def parts_of(groups: Groups, cells: int = _CELLS) -> Iterator[tuple[Groups, int]]:
    """Return the groups some at a time, each time with how many they are; the rest of the table is one group more.

    So every part has the whole table's shares, and what is computed of it takes little memory.

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


def demands_on(column: str, wanted: Sensitive, distance: Distance) -> Iterator[tuple[ColumnDemand, bool]]:
    """Return what is measured of a column and whether it is wanted: the simplest always, the others where they are."""
    known = {type(each): each for each in wanted.criteria(column, distance)}
    for kind in sorted(OF_COLUMN, key=lambda each: not each.general):
        made = CLOSENESS[distance] if kind is Closeness else kind
        if made in known:
            yield known[made], True
        elif kind.general:
            make: Callable[..., ColumnDemand] = made
            yield make(column, _MET_BY_ALL, harmless=frozenset(wanted.harmless)), False


def closeness_of(labels: pa.Array, wanted: Sensitive, declared: Declared, *, as_told: bool) -> ValueDistances:
    """Return the distance that is wanted, or else the one that the declared type has.

    `as_told` says that values were counted in the order of their type; as text, they are put in order here.
    """
    if wanted.distance == "hierarchical" and declared.recoding is not None:
        above = _lifts(labels, declared.recoding)
        return ValueDistances("hierarchical", lambda groups: replace(groups, lifts=above))
    if wanted.distance == "equal":
        return ValueDistances("equal")
    order = np.arange(len(labels)) if declared.type in _ORDERED and as_told else _order(labels, declared.type)
    if order is None and wanted.distance == "ordered" and declared.recoding is not None:
        order = _declared_order(labels, declared.recoding)
    return ValueDistances("equal") if order is None else ValueDistances("ordered", lambda groups: groups.placed(order))


def _order(labels: pa.Array, kind: Type | None) -> NDArray[np.intp] | None:
    """Return the place of each value among numbers or days; None if they have no order, or are no longer numbers.

    What is missing comes last.  The ordered distance is never above the other, so without a declared type the other
    is taken.
    """
    if kind is None or kind not in _ORDERED:
        return None
    if kind is Type.DATE and pa.types.is_string(labels.type):
        labels = pa.array([None if label is None else end_value(label) for label in labels.to_pylist()], pa.string())
    found = read(labels, kind)
    if found.unreadable.any():
        return None
    return _ranks(pc.array_sort_indices(found.values).to_numpy())


def _declared_order(labels: pa.Array, recoding: Recoding) -> NDArray[np.intp] | None:
    """Return the place of each value among the declared ones, what is not declared after them."""
    if recoding.classes is None:
        return None
    known = {label: place for place, label in enumerate(recoding.classes.labels().to_pylist())}
    return _ranks(np.argsort([known.get(label, len(known)) for label in labels.to_pylist()], kind="stable"))


def _ranks(sequence: NDArray[np.integer]) -> NDArray[np.intp]:
    places = np.empty(len(sequence), np.intp)
    places[sequence] = np.arange(len(sequence))
    return places


def _lifts(labels: pa.Array, recoding: Recoding) -> tuple[Codes, ...]:
    """Return the class of each value at each level above; what is not declared is apart from all else."""
    if recoding.classes is None:
        return ()
    known: Mapping[str | None, int] = {label: code for code, label in enumerate(recoding.classes.labels().to_pylist())}
    values = labels.to_pylist()
    declared = [label for label in values if label in known]
    found = []
    for lift in lifts(recoding.classes, np.array([known[label] for label in declared], np.int32)):
        above = dict(zip(declared, lift.tolist(), strict=True))
        places = [above.get(label, len(known) + place) for place, label in enumerate(values)]
        found.append(np.unique(places, return_inverse=True)[1].astype(np.int32))
    return tuple(found)


def crowds(
    counts: Counts, columns: Sequence[str], k: int | None, meaning: Meaning = KAnonymity.meaning
) -> CriterionFinding:
    """Return k-anonymity over some columns."""
    sizes = Sizes.of(counts, columns)
    short = None if k is None else sizes.below(k)
    return CriterionFinding(Measured(meaning, k, sizes.smallest, short), tuple(columns))


def sensitive_findings(
    counts: Counts, quasi: Sequence[str], sensitive: str, wanted: Sensitive, declared: Declared
) -> list[CriterionFinding]:
    """Return diversity, closeness and likeness of one sensitive column; nothing if all it says is `*`.

    Classes of nothing but harmless values pass, except that they lack the others, which is a disclosure too.
    """
    groups = Groups.of(counts, quasi, sensitive)
    if groups.labels.to_pylist() == [TOP]:
        return []
    told = counts.classes[counts.names.index(sensitive)].recoding.column.type
    scale = closeness_of(groups.labels, wanted, declared, as_told=told is declared.type)
    hurting = harmful(groups, frozenset(wanted.harmless))
    found: dict[str, Measured] = {}
    for part, number in parts_of(groups):
        counted = part.total(hurting[part.values].astype(np.int64))[:number] > 0
        for demand, expected in demands_on(sensitive, wanted, scale.distance):
            each = demand.measured(scale.prepared(part) if isinstance(demand, Closeness) else part)[:number]
            which, name = counted | demand.everywhere, demand.meaning.name
            sizes = part.sizes[:number][which]
            some = measured(demand.meaning, each[which], sizes, demand.bound if expected else None)
            found[name] = found[name].joined(some) if name in found else some
    return [CriterionFinding(each, tuple(quasi), sensitive) for each in found.values()]


def table_findings(partition: Partition, quasi: Sequence[str], wanted: CheckCriteria) -> Iterator[CriterionFinding]:
    """Return what is wanted of all classes together, or against a population."""
    for demand in wanted.table_demands():
        for found in demand.measures(partition):
            yield CriterionFinding(found, tuple(quasi))
