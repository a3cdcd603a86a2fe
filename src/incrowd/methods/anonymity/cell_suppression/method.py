"""Cell suppression: single cells are left out, as few as can be found, until nobody stands alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.cells import Cells
from incrowd.core.claims.privacy import Anonymity, Pseudonymity
from incrowd.core.coins import Coins
from incrowd.core.counts import Counts
from incrowd.core.plan import Method, Plan
from incrowd.core.recoding import Classes
from incrowd.core.schema import Schema
from incrowd.core.steps.rows import KeepRows, Recode, keep_rows, recode
from incrowd.core.steps.step import Step, fold
from incrowd.core.table import Table
from incrowd.criteria.groups import class_starts
from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.cell_suppression.agreement import count_matches, make_equal, make_match
from incrowd.methods.anonymity.cell_suppression.cells import MISSING, Parts, VisibleTuples, overlaps
from incrowd.methods.anonymity.cell_suppression.check import (
    ArrangeBlanks,
    CellsCheck,
    LeaveOutCells,
    MissingCells,
    SubsetsClaim,
    WildcardsClaim,
    WildSubsetsClaim,
    demanded,
)
from incrowd.methods.anonymity.shared.classes import ClassesPicture
from incrowd.methods.anonymity.shared.demands import Demands, quasi_identifiers
from incrowd.methods.shared.columns import released_cells, row_limits
from incrowd.methods.shared.microdata import Blanked, CodedColumn, occurring_values
from incrowd.verifier.check import maybe, one

Demand = tuple[tuple[int, ...], int]
"""The columns that must agree, and in how many rows."""


@dataclass(frozen=True)
class CrowdDemand:
    """How many rows must agree: k in all columns, so many in every subset of a size; and whether missing matches.

    >>> list(CrowdDemand(5, {1: 9}).over(2))
    [((0,), 9), ((1,), 9), ((0, 1), 5)]
    """

    k: int
    subsets: Mapping[int, int]
    wild: bool = False

    def over(self, columns: int) -> Iterator[Demand]:
        """Yield the columns that must agree, and in how many rows; the fewest columns first."""
        for size in sorted(self.subsets):
            if size < columns and self.subsets[size] > 1:
                yield from ((chosen, self.subsets[size]) for chosen in combinations(range(columns), size))
        k = max(self.k, *(rows for size, rows in self.subsets.items() if size == columns), 1)
        if k > 1:
            yield tuple(range(columns)), k


@dataclass(frozen=True, eq=False)
class SuppressedTuples:
    """What becomes of tuples: for each piece the tuple it comes from, what it shows, and how many rows it has."""

    origins: NDArray[np.intp]
    visible: VisibleTuples

    def price(self, before: VisibleTuples, weights: NDArray[np.float64]) -> float:
        """Return what the cells cost that are left out."""
        newly = (self.visible.codes == MISSING) & (before.codes[:, self.origins] != MISSING)
        return float(((weights @ newly) * self.visible.rows).sum())


def suppress_cells(
    tuples: VisibleTuples, crowded: CrowdDemand, weights: NDArray[np.float64]
) -> SuppressedTuples | None:
    """Leave out cells until every demand is met; None if there are fewer rows than some demand asks for.

    Where missing cells are values, rows that agree in all columns agree in every subset: so the largest of the numbers,
    asked of all columns, is another way to meet all demands, and the cheaper one is taken.
    """
    columns = len(tuples.codes)
    demands = list(crowded.over(columns))
    most = max((rows for _, rows in demands), default=1)
    if tuples.total < most:
        return None
    ways = [_walked(tuples, demands, weights, wild=crowded.wild)]
    if len(demands) > 1 and not crowded.wild:
        ways.append(_walked(tuples, [(tuple(range(columns)), most)], weights, wild=False))
    return min(ways, key=lambda pieces: pieces.price(tuples, weights))


def _walked(
    tuples: VisibleTuples, demands: Sequence[Demand], weights: NDArray[np.float64], *, wild: bool
) -> SuppressedTuples:
    """Meet one demand after the other, again and again until all are met.

    Cells are only ever left out, so this ends: with nothing shown, every demand is met.  Where missing cells match,
    meeting one demand breaks no other.
    """
    pieces, again = SuppressedTuples(np.arange(len(tuples)), tuples), True
    while again:
        again = False
        for columns, k in demands:
            chosen = np.zeros(len(tuples.codes), np.bool_)
            chosen[list(columns)] = True
            met = _met(pieces, (chosen, k), weights, wild=wild)
            again |= met is not pieces
            pieces = met
    return pieces


def _met(
    pieces: SuppressedTuples, demand: tuple[NDArray[np.bool_], int], weights: NDArray[np.float64], *, wild: bool
) -> SuppressedTuples:
    """Return pieces that meet one demand, the same ones if they do already."""
    columns, k = demand
    codes = pieces.visible.codes
    columns = columns & (codes.min(axis=1) < codes.max(axis=1))  # what all rows show alike tells nobody apart
    ids, rows = pieces.visible.alike(columns)
    first = np.zeros(len(rows), np.intp)
    first[ids] = np.arange(len(ids))
    over = VisibleTuples(codes[:, first][columns], rows)
    if rows.min() >= k or (wild and count_matches(over, k).min() >= k):
        return pieces
    parts = (make_match if wild else make_equal)(over, k, weights[columns])
    return _cut(pieces, ids, columns, parts)


def _cut(pieces: SuppressedTuples, ids: NDArray[np.intp], columns: NDArray[np.bool_], parts: Parts) -> SuppressedTuples:
    """Return the pieces that parts of their classes over some columns make of them."""
    order = np.argsort(ids, kind="stable")
    piece, part, rows = overlaps(pieces.visible.rows[order], parts.rows)
    piece = order[piece]
    codes = pieces.visible.codes[:, piece]
    codes[columns] = np.where(parts.blank[part].T, MISSING, codes[columns])
    return SuppressedTuples(pieces.origins[piece], VisibleTuples(codes, rows))


@dataclass(frozen=True)
class CellSuppression(Method):
    """k-anonymity by leaving out single cells, few of them; the other cells stay as they are.

    Guarantee: every combination of the quasi-identifiers in the output, missing cells being values of their own, occurs
    at least k times; with `missing: matches`, only that at least k rows match each row where a missing cell matches
    anything; with `subsets`, the same of every so many of the quasi-identifiers.  These are properties of the output's
    form.  Nothing else is guaranteed and there is no ε: the cells were chosen by looking at all rows, and sensitive
    columns stay as they are.

    Assumes: people can be looked up by the quasi-identifiers and by no other column; one row is one person, or the
    person column says whose it is.

    Source: Samarati & Sweeney 1998 for the form; Meyerson & Williams 2004 for k-anonymity by cells, and why the fewest
    are hard to find; Templ, Kowarik & Meindl 2015 (sdcMicro) for importance, subsets, and matching.

    >>> CellSuppression(5, subsets={2: 10}).wild
    False
    """

    name: ClassVar[str] = "cell-suppression"

    k: int
    missing: Literal["value", "matches"] = "value"
    subsets: Mapping[int, int] = field(default_factory=dict)
    importance: Mapping[str, Fraction] = field(default_factory=dict)
    levels: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.k < 1 or any(k < 1 for k in self.subsets.values()):
            raise InvalidParameter("a crowd needs k of at least 1, over all columns and over subsets.")
        if any(size < 1 for size in self.subsets):
            raise InvalidParameter("subsets name how many columns they have, 1 or more, each with its k.")
        if self.missing not in ("value", "matches"):
            raise InvalidParameter(f"a missing cell is a value or it matches, not {self.missing!r}.")
        if any(weight <= 0 for weight in self.importance.values()):
            raise InvalidParameter("the importance of a column is above 0: the weight of its cells.")

    @property
    def wild(self) -> bool:
        """Whether a missing cell matches every value."""
        return self.missing == "matches"

    @property
    def demands(self) -> Demands:
        """What every class must meet where missing cells are values."""
        return Demands(1 if self.wild else self.k)

    @property
    def unchecked(self) -> str | None:
        if not self.wild:
            return None
        return (
            "with missing: matches the policy asks for rows that match, which are counted when a release is verified: "
            "use incrowd verify, or give --k to count missing cells as values."
        )

    def cells(self, schema: Schema) -> Cells:
        """Return the tuples that are counted; free text that nothing makes coarser is refused."""
        quasi = quasi_identifiers(schema)
        for name in self.importance:
            if name not in quasi:
                raise InvalidParameter(f"{name!r} is not a quasi-identifier: none of its cells is left out.")
        for size in self.subsets:
            if size > len(quasi):
                raise InvalidParameter(f"there are {len(quasi)} quasi-identifiers, and no subsets of {size}.")
        return released_cells(schema, self.levels)

    def plan(self, schema: Schema) -> Plan:
        """Guarantee a form, from the schema alone; rows that match need not look alike."""
        steps = self.steps(schema)
        settings = {**demanded(self.k, self.subsets), "missing": self.missing}
        smallest = 1 if self.wild else self.k
        guarantee, cells = fold(steps, schema.unit), self.cells(schema)
        return Plan(self.name, steps, guarantee, {}, self.release, smallest, settings, cells=cells)

    def steps(self, schema: Schema) -> tuple[Step, ...]:
        """Return the steps: whose rows, which levels, how many must agree, which order."""
        recoded = recode(self.cells(schema))
        leave_out = LeaveOutCells(
            quasi_identifiers(schema),
            demanded(self.k, self.subsets),
            MissingCells(self.missing),
            {name: Fraction(weight) for name, weight in self.importance.items()},
        )
        return (*keep_rows(schema.unit), recoded, leave_out, ArrangeBlanks())

    def release(self, table: Table, coins: Coins) -> Blanked:
        """Count the rows of each tuple in one pass, and leave out cells on the counts.

        Where some rows of a tuple lose cells and others do not, coins decide which, so that what is missing tells
        nothing about the columns that stay.
        """
        schema = table.schema
        counts = table.engine.count(table.rows, self.cells(schema), *row_limits(table, coins))
        return self.blanked(counts, schema, coins)

    def blanked(self, counts: Counts, schema: Schema, coins: Coins) -> Blanked:
        """Return the table with missing cells; without rows if there are fewer than k."""
        quasi = quasi_identifiers(schema)
        tuples = counts.marginal(quasi)
        visible = VisibleTuples(codes_of(tuples.classes, tuples.codes()), tuples.counts)
        weights = np.array([float(self.importance.get(name, 1)) for name in quasi])
        pieces = suppress_cells(visible, CrowdDemand(self.k, self.subsets, self.wild), weights) if len(tuples) else None
        places = counts.marginal([*quasi, *(name for name in counts.names if name not in quasi)])
        if pieces is None:
            nobody = VisibleTuples(np.zeros((len(quasi), 0), np.int32), np.zeros(0, np.int64))
            return table_of(places, SuppressedTuples(np.zeros(0, np.intp), nobody), quasi, counts.names)
        owners = np.zeros(len(places), np.intp)
        owners[class_starts(places, len(quasi))[1:]] = 1
        return table_of(places, deal(pieces, (np.cumsum(owners), places.counts), coins), quasi, counts.names)


def codes_of(classes: tuple[Classes, ...], codes: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    """Return codes from 1 on, and MISSING for what is missing."""
    columns = []
    for column, code in zip(classes, codes, strict=True):
        valid = column.values().is_valid().to_numpy(zero_copy_only=False)
        columns.append(np.where(valid[code], code + 1, MISSING))
    return np.stack(columns).astype(np.int32)


def deal(pieces: SuppressedTuples, cells: tuple[NDArray[np.intp], NDArray[np.int64]], coins: Coins) -> SuppressedTuples:
    """Deal the rows of each tuple's cells, which differ in other columns, out to its pieces at random.

    `cells` are the tuple and the rows of each; the pieces that come back name cells as their origins.
    """
    owners, rows = cells
    pieces_of = np.bincount(pieces.origins, minlength=int(owners.max(initial=-1)) + 1)
    mixed = (pieces_of > 1)[owners] & (np.bincount(owners)[owners] > 1)
    single = np.repeat(np.flatnonzero(mixed), rows[mixed])
    ranks = coins.below(2**62, len(single)) if len(single) else np.zeros(0, np.int64)
    cards = np.concatenate([np.flatnonzero(~mixed), single[np.lexsort((ranks, owners[single]))]])
    times = np.concatenate([rows[~mixed], np.ones(len(single), np.int64)])
    order = np.argsort(owners[cards], kind="stable")
    cards, times = cards[order], times[order]
    sequence = np.argsort(pieces.origins, kind="stable")
    card, piece, shared = overlaps(times, pieces.visible.rows[sequence])
    return SuppressedTuples(cards[card], VisibleTuples(pieces.visible.codes[:, sequence[piece]], shared))


def table_of(places: Counts, pieces: SuppressedTuples, quasi: tuple[str, ...], released: tuple[str, ...]) -> Blanked:
    """Return a table of pieces that name cells as their origins: quasi-identifiers as they show, others as kept."""
    codes = places.codes()
    columns: dict[str, CodedColumn] = {}
    for place, (name, classes) in enumerate(zip(places.names, places.classes, strict=True)):
        values = classes.values()
        if name in quasi:
            visible = pieces.visible.codes[place]
            values = pa.concat_arrays([values, pa.nulls(1, values.type)])
            columns[name] = occurring_values(values, np.where(visible == MISSING, len(values) - 1, visible - 1))
        else:
            columns[name] = occurring_values(values, codes[place][pieces.origins])
    return Blanked.of({name: columns[name] for name in released}, pieces.visible.rows, quasi)


class CellsPicture(ClassesPicture):
    """Equivalence classes, a missing cell being a value, and how many cells are empty."""

    evidence = {**ClassesPicture.evidence, "missing cells": "Empty cells in the quasi-identifiers"}  # noqa: RUF012


CHECK = CellsCheck(
    order=(maybe(KeepRows), one(Recode), one(LeaveOutCells), one(ArrangeBlanks)),
    claims=(Anonymity, WildcardsClaim, SubsetsClaim, WildSubsetsClaim, Pseudonymity),
)
PICTURE = CellsPicture()
METHOD = CellSuppression
