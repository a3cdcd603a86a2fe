"""Groups of columns: those that a policy names, or a private choice among all by how far columns hang together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from incrowd.core.coins import Coins
from incrowd.core.counts import Counts
from incrowd.core.schema import Schema
from incrowd.core.unit import Adjacency, Unit
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.selection import NoisyMax
from incrowd.methods.anonymity.slicing.steps import SLICE, ChooseGroups

Groups = tuple[tuple[str, ...], ...]


def groups_of(groups: Sequence[tuple[str, ...] | str], schema: Schema) -> Groups:
    """Return groups that hold every released column once, each in the order of the schema; refuse any others.

    >>> from incrowd.core.schema import Column
    >>> groups_of((("zip", "age"), "sex"), Schema((Column("age"), Column("sex"), Column("zip"))))
    (('age', 'zip'), ('sex',))
    """
    lists = [(group,) if isinstance(group, str) else group for group in groups]
    named = [name for group in lists for name in group]
    for name in named:
        if schema[name] in schema.unreleased:
            raise InvalidParameter(f"{name!r} is an identifier: it is never released, in no group.")
    released = released_names(schema)
    if sorted(named) != sorted(released) or not all(lists) or len(lists) < 2:
        raise InvalidParameter(
            "groups: puts every released column into exactly one of two or more groups. What is not to be released is "
            "an identifier; for one table use method safe."
        )
    return tuple(tuple(name for name in released if name in group) for group in lists)


def released_names(schema: Schema) -> tuple[str, ...]:
    """Return the columns that are released, or refuse the name that numbers the tables.

    >>> from incrowd.core.schema import Column, Role
    >>> released_names(Schema((Column("age"), Column("id", Role.IDENTIFIER))))
    ('age',)
    """
    names = tuple(column.name for column in schema.released)
    if SLICE in names:
        raise InvalidParameter(f"a column {SLICE!r} numbers the tables of a release: give yours another name.")
    return names


def part_of(schema: Schema, group: tuple[str, ...]) -> Schema:
    """Return the schema of one group, with everything that is not released.

    >>> from incrowd.core.schema import Column
    >>> part_of(Schema((Column("age"), Column("sex"))), ("sex",)).names
    ('sex',)
    """
    names = {column.name for column in schema.unreleased} | set(group)
    return Schema(tuple(column for column in schema.columns if column.name in names), schema.unit)


MOVED = 2
"""The most by which one row, added or removed, moves the association of two columns."""
_SQUARES_FIT = 2**31  # below it n² fits into 63 bits


def association(counts: Counts) -> int:
    """Return the association of the two columns that were counted, rounded down to whole rows.

    With n rows, n(a, b) of them showing a and b, it is S = Σ max(0, n(a, b) − n(a)·n(b)/n): half the distance between
    the table and the one that independent columns with the same counts would give; 0 if they are independent.

    One row moves it by at most `MOVED`.  Proof.  Let x(a, b) = n(a, b) − n(a)·n(b)/n, let the new row show (s, t), and
    u = n(s), v = n(t) before it came.  Write q = (n − u)(n − v)/(n(n + 1)).  A line of arithmetic for each kind of cell
    gives what the row adds to x: q at (s, t); −q·n(b)/(n − v) at (s, b) for b ≠ t, together −q; likewise together −q at
    (a, t) for a ≠ s; and n(a)·n(b)/(n(n + 1)) elsewhere, together q.  So all that rises adds up to 2q, as does all that
    falls, and S, a sum of positive parts, moves by at most 2q ≤ 2n/(n + 1) < 2.  The first row of a table moves S from
    0 to 0.  Two numbers less than 2 apart are at most 2 apart when rounded down.  For several rows, one after the
    other, the numbers before rounding move by less than 2 each.  ∎

    The bound cannot be improved: a row with two new values beside n rows of independent columns adds 2n/(n + 1).

    >>> from incrowd.core.domain import Categories
    >>> from incrowd.core.hierarchy.flat import Flat
    >>> from incrowd.core.recoding import Recoding
    >>> from incrowd.core.schema import Column
    >>> one, other = (Recoding(Column(name, hierarchy=Flat(Categories(("x", "y")))), 0).classes for name in "ab")
    >>> association(Counts((one, other), np.array([0, 5]), np.array([30, 30])))   # always alike: x with x, y with y
    30
    """
    total = counts.total
    if not total:
        return 0
    kind = np.int64 if total < _SQUARES_FIT else object
    first, second = counts.codes()
    together = counts.counts.astype(kind)
    ones, others = (_marginal(codes, counts.counts).astype(kind) for codes in (first, second))
    excess = np.maximum(together * total - ones[first] * others[second], 0)
    return int(excess.sum()) // total


def associations(counts: Counts) -> NDArray[np.int64]:
    """Return the associations of all pairs of the columns that were counted, as a symmetric table with an empty middle.

    >>> from incrowd.core.recoding import Recoding
    >>> from incrowd.core.schema import Column
    >>> associations(Counts((Recoding(Column("zip"), 1).classes,), np.array([0]), np.array([7])))
    array([[0]])
    """
    table = np.zeros((len(counts.names), len(counts.names)), np.int64)
    for (i, one), (j, other) in combinations(enumerate(counts.names), 2):
        table[i, j] = table[j, i] = association(counts.marginal([one, other]))
    return table


def _marginal(codes: NDArray[np.integer], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    sums = np.zeros(int(codes.max()) + 1, np.int64)
    np.add.at(sums, codes, rows)
    return sums


_MOST = 20_000  # ways to group columns: each is weighed by a private choice
Group = tuple[int, ...]
"""The places of the columns of one group, rising."""


@dataclass(frozen=True)
class Grouping:
    """How so many columns are put into groups of at most `size`: into as few groups as that takes.

    How many groups there are, and so what their release costs, is known before a row is read.

    Guarantee: the groups are ε-differentially private.
    Assumes: `associations` are those of the rows (`association`), one row moving each by at most `MOVED`.
    Source: McKenna & Sheldon 2020 for the choice; the proof follows.

    Proof.  The candidates follow from the numbers of columns and their largest group.  A candidate's score is the sum
    of the associations of all pairs that it keeps together, at most `pairs` of them.  A unit of r rows, added or
    removed, moves each by at most r·MOVED, so a score by at most r·MOVED·pairs; a unit that is replaced is removed and
    added, which is twice that.  Permute-and-flip at this sensitivity is ε-private.  ∎

    >>> grouping = Grouping(columns=5, size=3)
    >>> grouping.groups, len(list(grouping.candidates())), grouping.pairs
    (2, 10, 4)
    """

    columns: int
    size: int

    def __post_init__(self) -> None:
        if not 2 <= self.size < self.columns:
            raise InvalidParameter(
                f"groups: auto puts {self.columns} columns into groups: size, the most columns in a group, is at "
                "least 2 and below that. With all columns in one table, use method safe."
            )

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return math.ceil(self.columns / self.size)

    @property
    def pairs(self) -> int:
        """How many pairs of columns a candidate keeps together at most: full groups, and what is left in one."""
        full, left = divmod(self.columns, self.size)
        return full * math.comb(self.size, 2) + math.comb(left, 2)

    def sensitivity(self, unit: Unit) -> int:
        """Return the most by which one unit of privacy moves a score."""
        return MOVED * self.pairs * unit.max_rows * (1 if unit.adjacency is Adjacency.ADD_REMOVE else 2)

    def candidates(self) -> Iterator[tuple[Group, ...]]:
        """Return every way in a fixed order, each once: groups in the order of their first columns."""
        return self._split(tuple(range(self.columns)), self.groups)

    def counted(self) -> int:
        """Return how many candidates there are, or refuse if they are too many to weigh."""
        for number, _ in enumerate(self.candidates()):
            if number >= _MOST:
                raise InvalidParameter(
                    f"{self.columns} columns can be put into groups of at most {self.size} in more than {_MOST:,} "
                    "ways, too many to weigh. Give the groups, release fewer columns, or choose another size."
                )
        return number + 1

    def choose(
        self, associations: NDArray[np.int64], choosing: Fraction, unit: Unit, coins: Coins
    ) -> tuple[Group, ...]:
        """Return the groups that a private selection chose."""
        candidates = list(self.candidates())
        scores = [sum(int(associations[pair]) for pair in kept_together(candidate)) for candidate in candidates]
        return candidates[NoisyMax(choosing, self.sensitivity(unit)).release(np.array(scores, np.int64), coins)]

    def step(self, choosing: Fraction, unit: Unit) -> ChooseGroups:
        """Return the choice as a step."""
        return ChooseGroups(choosing, self.size, self.counted(), self.sensitivity(unit))

    def _split(self, left: Group, groups: int) -> Iterator[tuple[Group, ...]]:
        if groups == 1:
            yield (left,)
            return
        first, *others = left
        for more in range(min(self.size, len(left) - groups + 1)):
            if len(others) - more > (groups - 1) * self.size:
                continue
            for beside in combinations(others, more):
                rest = tuple(column for column in others if column not in beside)
                for behind in self._split(rest, groups - 1):
                    yield ((first, *beside), *behind)


def kept_together(groups: tuple[Group, ...]) -> Iterator[tuple[int, int]]:
    """Return the pairs of columns that are in one group.

    >>> list(kept_together(((0, 2), (1,))))
    [(0, 2)]
    """
    for group in groups:
        yield from combinations(group, 2)
