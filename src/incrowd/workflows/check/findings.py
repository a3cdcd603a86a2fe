"""Findings: what was measured of a table, held against what is wanted of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from incrowd.core.counts import Counts
from incrowd.core.hierarchy.hierarchy import TOP
from incrowd.criteria.closeness import Closeness
from incrowd.criteria.groups import Groups
from incrowd.criteria.k_anonymity import KAnonymity
from incrowd.criteria.measure import Meaning, Measured, measured
from incrowd.criteria.partition import Partition, harmful
from incrowd.measures.sizes import Sizes
from incrowd.methods.anonymity.syntactic.sensitive import Sensitive
from incrowd.workflows.check.criteria import CriterionFinding, Wanted
from incrowd.workflows.check.measures import Declared, closeness_of, demands_on, parts_of


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


def table_findings(partition: Partition, quasi: Sequence[str], wanted: Wanted) -> Iterator[CriterionFinding]:
    """Return what is wanted of all classes together, or against a population."""
    for demand in wanted.table_demands():
        for found in demand.measures(partition):
            yield CriterionFinding(found, tuple(quasi))
