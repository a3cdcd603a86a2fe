"""Measured: what is measured of one sensitive column, class by class, and how far its values are apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.core.domain import Type
from incrowd.core.keys import Codes
from incrowd.core.reading import read
from incrowd.core.recoding import Recoding
from incrowd.criteria.catalog import OF_COLUMN
from incrowd.criteria.closeness import CLOSENESS, Closeness
from incrowd.criteria.demand import ColumnDemand
from incrowd.criteria.groups import Groups
from incrowd.criteria.partition import lifts
from incrowd.methods.anonymity.syntactic.sensitive import Distance, Sensitive

_ORDERED = (Type.INTEGER, Type.DECIMAL, Type.DATE)
_CELLS = 2**19

_MET_BY_ALL = 1
"""The l, and the t, that every class meets."""


@dataclass(frozen=True)
class Declared:
    """What a policy says of a sensitive column: its type, and its values at the level at which it is released."""

    type: Type | None = None
    recoding: Recoding | None = None


@dataclass(frozen=True)
class Scale:
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


def closeness_of(labels: pa.Array, wanted: Sensitive, declared: Declared, *, as_told: bool) -> Scale:
    """Return the distance that is wanted, or else the one that the declared type has.

    `as_told` says that values were counted in the order of their type; as text, they are put in order here.
    """
    if wanted.distance == "hierarchical" and declared.recoding is not None:
        above = _lifts(labels, declared.recoding)
        return Scale("hierarchical", lambda groups: replace(groups, lifts=above))
    if wanted.distance == "equal":
        return Scale("equal")
    order = np.arange(len(labels)) if declared.type in _ORDERED and as_told else _order(labels, declared.type)
    if order is None and wanted.distance == "ordered" and declared.recoding is not None:
        order = _declared_order(labels, declared.recoding)
    return Scale("equal") if order is None else Scale("ordered", lambda groups: groups.placed(order))


def _order(labels: pa.Array, kind: Type | None) -> NDArray[np.intp] | None:
    """Return the place of each value among numbers or days; None if they have no order, or are no longer numbers.

    What is missing comes last.  The ordered distance is never above the other, so without a declared type the other
    is taken.
    """
    if kind is None or kind not in _ORDERED:
        return None
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
