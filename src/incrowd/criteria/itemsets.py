"""Itemsets: how many rows have each combination of a few items, and the criterion that none is rare."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import comb
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from incrowd.core.claims.claim import Claim, assumed
from incrowd.core.keys import Codes, Keys, Layout, grouped
from incrowd.core.sets import Sets
from incrowd.core.steps.step import ROW_IS_PERSON
from incrowd.core.terms import Assumption, Exposure, Theorem
from incrowd.core.unit import Unit
from incrowd.criteria.criterion import Criterion, Mask, Monotone
from incrowd.criteria.demand import COUNTED, INTERSECTION, MINIMALITY, QUASI
from incrowd.criteria.measure import Bound, Meaning
from incrowd.criteria.partition import Partition
from incrowd.errors import InvalidParameter

_AT_ONCE = 2**22
"""Combinations listed at a time; more only if one greatest item has more."""

Supports = tuple[Layout, Keys, NDArray[np.int64]]
"""How combinations of one size are laid out in keys, the greatest item first; the keys; how many rows hold each."""

KNOWN = Assumption("at-most-m-items-known", "nobody knows more than m items of a person")
ASSUMES = frozenset({KNOWN, QUASI, ROW_IS_PERSON})
_OPEN = (
    Exposure("more-items", "more than m known items: a longer combination may occur in a single row"),
    Exposure(
        "absent-items",
        "items known to be absent, and the number of items: only what a person has is counted, not what they have not",
    ),
    Exposure(
        "further-items", "further items: rows that share the known items may all share another one, and give it away"
    ),
    INTERSECTION,
    MINIMALITY,
)


@dataclass(frozen=True, kw_only=True)
class KmClaim(Claim):
    """Nobody is found by a few items: no combination of them is rare."""

    kind = "k^m-anonymity"
    sentence = (
        "Among rows that agree in the named columns, each combination of at most m items that occurs, occurs in k rows "
        "or more."
    )
    rank: ClassVar[int] = 30

    k: int
    m: int
    items: str
    separator: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class KmAnonymity(Criterion):
    """Within each class, every combination of at most m items of a set-valued column that occurs, occurs in k rows.

    The empty combination counts, so a class has at least k rows.  What occurs in a union of classes occurs in one of
    them, and there in k rows: unions.

    Source: Terrovitis, Mamoulis & Kalnis 2008, Definition 1; Poulis, Loukides, Gkoulalas-Divanis & Skiadopoulos 2013
    for classes, as (k, k^m)-anonymity.

    >>> basket = Sets.of(np.array([0, 0, 1, 1, 2]), np.array([0, 1, 0, 1, 1]), rows=3)
    >>> one = Partition(np.array([3]), sets={"bought": (basket, np.zeros(3, np.intp))})
    >>> KmAnonymity("bought", 2, 2).met(one).tolist(), KmAnonymity("bought", 3, 1).met(one).tolist()
    ([True], [False])
    """

    theorem: ClassVar[Theorem] = Theorem(
        "itemset-anonymity-counted",
        "Terrovitis, Mamoulis & Kalnis 2008, counted: within each class, every combination of at "
        "most m items that occurs, occurs in at least k rows",
    )
    meaning: ClassVar[Meaning] = Meaning(
        "k^m-anonymity",
        "the fewest rows that share a combination of at most m items, and their other quasi-identifiers",
        Bound.AT_LEAST,
    )

    column: str
    k: int
    m: int

    def __post_init__(self) -> None:
        check(self.k, self.m)

    monotone = Monotone.UNIONS

    def retained(self, partition: Partition, among: Mask) -> Mask:
        sets, owners = partition.sets_of(self.column)
        size = len(partition)
        met = partition.sizes >= self.k
        for layout, keys, rows in supports(sets.within(owners), self.m):
            scarce = layout.unpack(keys[rows < self.k])[0]
            met[np.unique(scarce % (int(owners.max(initial=0)) + 1)) if size else []] = False
        return np.asarray(among & met)

    def claim(self, separator: str, columns: tuple[str, ...], unit: Unit) -> KmClaim:
        return KmClaim(
            k=self.k,
            m=self.m,
            items=self.column,
            separator=separator,
            columns=columns,
            unit=unit,
            theorem=(self.theorem,),
            preconditions=(*COUNTED, *assumed(ASSUMES)),
            not_protected=_OPEN,
        )


def check(k: int, m: int) -> None:
    """Refuse a k or an m below 1.

    >>> check(2, 0)
    Traceback (most recent call last):
    ...
    incrowd.errors.InvalidParameter: m must be at least 1: the number of items that an attacker may know.
    """
    if k < 1:
        raise InvalidParameter("k must be at least 1; with 1, every table passes.")
    if m < 1:
        raise InvalidParameter("m must be at least 1: the number of items that an attacker may know.")


def smallest_support(sets: Sets, m: int) -> int:
    """Return the fewest rows that hold a combination of at most m items which occurs; the empty one counts as well.

    The table is k^m-anonymous for this k and every smaller one.

    Source: Terrovitis, Mamoulis & Kalnis 2008, Definition 1.

    >>> smallest_support(Sets.of(np.array([0, 0, 1, 1, 2]), np.array([0, 1, 0, 1, 1]), rows=3), 2)
    2
    """
    check(1, m)
    return min((int(rows.min()) for _, _, rows in supports(sets, m) if len(rows)), default=len(sets))


def supports(sets: Sets, m: int, least: int = 0) -> Iterator[Supports]:
    """Count the rows of every combination of 1 to m items whose greatest is at least `least`, some at a time.

    Each combination is counted in one of the pieces, wholly: pieces are cut between greatest items.

    >>> pairs = list(supports(Sets.of(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), rows=2), 2))[1]
    >>> [column.tolist() for column in pairs[0].unpack(pairs[1])], pairs[2].tolist()
    ([[1], [0]], [2])
    """
    m = min(m, max(1, int(sets.lengths.max(initial=0))))  # no row holds a larger combination
    size = int(sets.items.max(initial=0)) + 1
    chosen = np.flatnonzero(sets.items >= least)
    order = chosen[np.argsort(sets.items[chosen], kind="stable")]
    starts = np.repeat(sets.starts[:-1], sets.lengths)[order]
    for piece in _pieces(sets.items[order], order - starts, m):
        yield from _counted(sets.items, order[piece], starts[piece], Layout((size,) * m))


def _pieces(items: Codes, before: NDArray[np.int64], m: int) -> Iterator[slice]:
    """Return slices between different items, each with about as many combinations as are listed at a time."""
    ways = np.array(
        [sum(comb(n, size) for size in range(m)) for n in range(int(before.max(initial=0)) + 1)], np.float64
    )
    ends = np.flatnonzero(np.append(items[1:] != items[:-1], True)) + 1 if len(items) else np.zeros(0, np.intp)
    done = np.cumsum(ways[before])[ends - 1] if len(items) else np.zeros(0)
    start = 0
    while start < len(items):
        reached = 0.0 if not start else done[np.searchsorted(ends, start)]
        place = max(int(np.searchsorted(done, reached + _AT_ONCE, "right")) - 1, int(np.searchsorted(ends, start + 1)))
        yield slice(start, int(ends[place]))
        start = int(ends[place])


def _counted(items: Codes, at: NDArray[np.intp], starts: NDArray[np.int64], whole: Layout) -> Iterator[Supports]:
    """Count the combinations that start with the items at these places, the next item always before the last."""
    members = [items[at]]
    span = (int(members[0][0]), int(members[0][-1])) if len(at) else (0, 0)
    for size in range(1, len(whole.sizes) + 1):
        if size > 1:
            several = at - starts
            total = int(several.sum())
            again = np.repeat(np.arange(len(at)), several)
            at = np.arange(total) - np.repeat(np.cumsum(several) - several, several) + starts[again]
            starts, members = starts[again], [*(column[again] for column in members), items[at]]
        if not len(at):
            return
        layout = Layout(whole.sizes[:size])
        yield layout, *_tally(layout.pack(members), span, layout)


def _tally(keys: Keys, span: tuple[int, int], layout: Layout) -> tuple[Keys, NDArray[np.int64]]:
    """Return each key with how often it occurs; by a counter for each possible key where these are few."""
    rest = layout.size // layout.sizes[0]
    low, room = span[0] * rest, (span[1] - span[0] + 1) * rest
    if keys.dtype != np.int64 or room > 4 * len(keys) + 2**16:
        return grouped(keys)
    counts = np.bincount(keys - low, minlength=room)
    met = np.flatnonzero(counts)
    return met + low, counts[met].astype(np.int64)
