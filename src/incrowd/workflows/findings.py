"""Findings: what was measured of a table, held against what is wanted of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from incrowd.core.counts import Counts
from incrowd.core.hierarchy.hierarchy import TOP
from incrowd.criteria.criterion import Criterion
from incrowd.criteria.groups import Each, Groups
from incrowd.criteria.partition import Partition, harmful
from incrowd.criteria.risk import AverageRisk, unique_share
from incrowd.measures.sizes import Sizes
from incrowd.methods.anonymity.sensitive import Sensitive
from incrowd.workflows import criteria as named
from incrowd.workflows.criteria import Finding, Wanted, fits
from incrowd.workflows.measured import Declared, closeness_of, measured, parts_of

About = tuple[tuple[str, ...], str | None]
"""The columns that make a class, and the sensitive column."""


def crowds(counts: Counts, columns: Sequence[str], k: int | None, criterion: str = named.CROWDS) -> Finding:
    """Return k-anonymity over some columns."""
    sizes = Sizes.of(counts, columns)
    short = None if k is None else sizes.below(k)
    return Finding(criterion, tuple(columns), None, k, sizes.smallest, short)


def sensitive_findings(
    counts: Counts, quasi: Sequence[str], sensitive: str, wanted: Sensitive, declared: Declared
) -> list[Finding]:
    """Return diversity, closeness and likeness of one sensitive column; nothing if all it says is `*`.

    Classes of nothing but harmless values pass, except that they lack the others, which is a disclosure too.
    """
    groups = Groups.of(counts, quasi, sensitive)
    if groups.labels.to_pylist() == [TOP]:
        return []
    told = counts.classes[counts.names.index(sensitive)].recoding.column.type
    closeness = closeness_of(groups.labels, wanted, declared, as_told=told is declared.type)
    hurting, about = harmful(groups, frozenset(wanted.harmless)), (tuple(quasi), sensitive)
    found: dict[str, Finding] = {}
    for part, number in parts_of(groups):
        counted = part.total(hurting[part.values].astype(np.int64))[:number] > 0
        for criterion, each, expected in measured(part, wanted, closeness):
            which = counted | (criterion == named.DISCLOSURE)
            some = _finding(criterion, about, each[:number][which], part.sizes[:number][which], expected)
            found[criterion] = _worse(found[criterion], some) if criterion in found else some
    return list(found.values())


def table_findings(partition: Partition, quasi: Sequence[str], wanted: Wanted) -> Iterator[Finding]:
    """Return what is wanted of all classes together, or against a population."""
    about: About = tuple(quasi), None
    sizes = partition.sizes
    if wanted.average_risk is not None:
        found = len(sizes) / partition.rows if len(sizes) else None
        left = _left_out(AverageRisk(wanted.average_risk), partition)
        yield Finding(named.AVERAGE, *about, float(wanted.average_risk), found, left)
    if wanted.unique is not None:
        found = unique_share(sizes, wanted.unique.people, wanted.unique.estimator) if len(sizes) else None
        left = _left_out(wanted.unique.criterion(), partition)
        yield Finding(named.UNIQUE, *about, float(wanted.unique.share), found, left)
    behind = wanted.population
    if behind is None:
        return
    people = partition.people()
    if behind.k is not None:
        yield _finding(named.MAPPED, about, people, sizes, behind.k)
    if behind.presence is not None:
        shares = np.divide(sizes, people, out=np.full(len(sizes), np.inf), where=people > 0)
        least = _finding(named.LEAST_PRESENCE, about, shares, sizes, behind.presence.least)
        if partition.outside and behind.presence.least:  # whoever is in no class is known to be absent
            least = replace(least, found=0.0, short=partition.rows)
        yield least
        yield _finding(named.MOST_PRESENCE, about, shares, sizes, behind.presence.most)


def _finding(
    criterion: str,
    about: About,
    each: Each | NDArray[np.int64],
    sizes: NDArray[np.int64],
    expected: float | Fraction | None,
) -> Finding:
    """Return the worst of what was measured, and how many rows are in classes that are not as expected."""
    worst = np.min if named.bound_of(criterion) is named.Bound.AT_LEAST else np.max
    found = worst(each).item() if len(each) else None
    if expected is None:
        return Finding(criterion, *about, None, found, None)
    expected = expected if isinstance(expected, int) else float(expected)
    failing = ~np.asarray(fits(criterion, each, expected), np.bool_)  # type: ignore[arg-type]
    return Finding(criterion, *about, expected, found, int(sizes[failing].sum()))


def _worse(one: Finding, other: Finding) -> Finding:
    """Return what was found in both: the worst, and the rows that fall short in either."""
    if one.found is None or other.found is None:
        return other if one.found is None else one
    worst = min if one.bound is named.Bound.AT_LEAST else max
    short = None if one.short is None or other.short is None else one.short + other.short
    return replace(one, found=worst(one.found, other.found), short=short)


def _left_out(criterion: Criterion, partition: Partition) -> int:
    return int(partition.sizes[~criterion.met(partition)].sum())
