"""Criteria: k-anonymity, l-diversity and t-closeness, each expected, found, and decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.core.counts import Counts
from incrowd.core.domain import Type
from incrowd.core.hierarchy import TOP
from incrowd.core.reading import read
from incrowd.errors import InvalidParameter
from incrowd.measures.closeness import equal, ordered
from incrowd.measures.diversity import distinct, entropy
from incrowd.measures.groups import Groups
from incrowd.measures.sizes import Sizes

TOLERANCE = 1e-9
"""By so much a number may miss what was expected: sums of shares are rounded."""

COLUMNS = "columns"
CROWDS = "k-anonymity"
RELEASED = "k-anonymity, all released columns"
DISTINCT = "distinct l-diversity"
ENTROPY = "entropy l-diversity"
EQUAL = "t-closeness"
ORDERED = "t-closeness, ordered"
MEANS: Mapping[str, str] = MappingProxyType(
    {
        COLUMNS: "how many columns are there that must not be: identifiers, and what the policy does not declare",
        CROWDS: "the fewest rows that share their quasi-identifiers",
        RELEASED: "the fewest rows that share everything that is released",
        DISTINCT: "the fewest different sensitive values among rows that share their quasi-identifiers",
        ENTROPY: "the same, where rare values count less: e to the least entropy",
        EQUAL: "how far the sensitive column among rows that share their quasi-identifiers is from the whole table, at "
        "most; any two values are equally far apart",
        ORDERED: "the same, where neighboring numbers or days are close",
    }
)
"""Every criterion, with its meaning."""

_ORDERED = (Type.INTEGER, Type.DECIMAL, Type.DATE)


@dataclass(frozen=True)
class Wanted:
    """What is expected of a table; None is measured and told, but decides nothing.

    >>> Wanted(k=5, t=0.2).any
    True
    """

    k: int | None = None
    l: int | None = None  # noqa: E741 (the name that everyone knows it by)
    entropy_l: float | None = None
    t: float | None = None

    def __post_init__(self) -> None:
        for name, least in (("k", self.k), ("l", self.l), ("entropy-l", self.entropy_l)):
            if least is not None and least < 1:
                raise InvalidParameter(f"{name} is at least 1: with 1, every table passes.")
        if self.t is not None and not 0 <= self.t <= 1:
            raise InvalidParameter("t lies between 0 (every group is like the whole table) and 1.")

    @property
    def any(self) -> bool:
        """Whether anything is expected at all."""
        return any(each is not None for each in (self.k, self.l, self.entropy_l, self.t))

    @property
    def about_sensitive(self) -> bool:
        """Whether something is expected of a sensitive column."""
        return any(each is not None for each in (self.l, self.entropy_l, self.t))


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
    def passed(self) -> bool | None:
        """Whether what was found is what was expected; None where nothing was."""
        if self.expected is None or self.found is None:
            return None if self.expected is None else True
        if self.criterion in (COLUMNS, EQUAL, ORDERED):
            return self.found <= self.expected + TOLERANCE
        return self.found >= self.expected * (1 - TOLERANCE)


def crowds(counts: Counts, columns: Sequence[str], k: int | None, criterion: str = CROWDS) -> Finding:
    """Return k-anonymity over some columns."""
    sizes = Sizes.of(counts, columns)
    short = None if k is None else sizes.below(k)
    return Finding(criterion, tuple(columns), None, k, sizes.smallest, short)


def sensitive_findings(
    counts: Counts, quasi: Sequence[str], sensitive: str, wanted: Wanted, kind: Type | None
) -> list[Finding]:
    """Return diversity and closeness of one sensitive column; nothing if all it says is `*`."""
    groups = Groups.of(counts, quasi, sensitive)
    if groups.labels.to_pylist() == [TOP]:
        return []
    told = counts.classes[counts.names.index(sensitive)].recoding.column.type
    order = np.arange(len(groups.labels)) if kind in _ORDERED and told is kind else _order(groups.labels, kind)
    distance = equal(groups) if order is None else ordered(groups, order)
    about = (tuple(quasi), sensitive)
    several, even = distinct(groups), entropy(groups)
    return [
        Finding(
            DISTINCT,
            *about,
            wanted.l,
            _least(several),
            _short(groups, None if wanted.l is None else several < wanted.l),
        ),
        Finding(
            ENTROPY,
            *about,
            wanted.entropy_l,
            _least(even),
            _short(groups, None if wanted.entropy_l is None else even < wanted.entropy_l * (1 - TOLERANCE)),
        ),
        Finding(
            EQUAL if order is None else ORDERED,
            *about,
            wanted.t,
            None if not len(distance) else float(distance.max()),
            _short(groups, None if wanted.t is None else distance > wanted.t + TOLERANCE),
        ),
    ]


def _order(labels: pa.Array, kind: Type | None) -> NDArray[np.intp] | None:
    """Return the place of each value among numbers or days; None if they have no order, or are no longer numbers.

    What is missing comes last.  The ordered distance is never above the other, so without a declared type the other
    is taken.
    """
    if kind not in _ORDERED:
        return None
    found = read(labels, kind)
    if found.unreadable.any():
        return None
    places = np.empty(len(labels), np.intp)
    places[pc.array_sort_indices(found.values).to_numpy()] = np.arange(len(labels))
    return places


def _least(each: NDArray[np.int64] | NDArray[np.float64]) -> float | None:
    return each.min().item() if len(each) else None


def _short(groups: Groups, failing: NDArray[np.bool_] | None) -> int | None:
    return None if failing is None else int(groups.sizes[failing].sum())
