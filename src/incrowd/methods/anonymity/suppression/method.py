"""Cell suppression: single cells are left out, as few as can be found, until nobody stands alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.plan import Plan
from incrowd.core.steps.rows import keep_rows, recode
from incrowd.core.steps.step import Step, fold
from incrowd.criteria.groups import class_starts
from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.mondrian.labels import kept_values
from incrowd.methods.anonymity.suppression.cells import MISSING, VisibleTuples, overlaps
from incrowd.methods.anonymity.suppression.demands import CrowdDemand, SuppressedTuples, suppress_cells
from incrowd.methods.anonymity.suppression.steps import ArrangeBlanks, LeaveOutCells, MissingCells, demanded
from incrowd.methods.anonymity.syntactic.demands import Demands, quasi_identifiers
from incrowd.methods.cells import released_cells
from incrowd.methods.outcomes.anonymized import Blanked
from incrowd.methods.person_rows import row_limits

if TYPE_CHECKING:
    from incrowd.core.cells import Cells
    from incrowd.core.coins import Coins
    from incrowd.core.counts import Counts
    from incrowd.core.recoding import Classes
    from incrowd.core.schema import Schema
    from incrowd.core.table import Table


@dataclass(frozen=True)
class CellSuppression:
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
            raise InvalidParameter(
                "the importance of a column is above 0: twice as much makes its cells twice as dear."
            )

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
        """Why a table alone is not checked for what this method demands, and what to do; None where it can be."""
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
        shown = VisibleTuples(codes_of(tuples.classes, tuples.codes()), tuples.counts)
        weights = np.array([float(self.importance.get(name, 1)) for name in quasi])
        pieces = suppress_cells(shown, CrowdDemand(self.k, self.subsets, self.wild), weights) if len(tuples) else None
        places = counts.marginal([*quasi, *(name for name in counts.names if name not in quasi)])
        if pieces is None:
            nobody = VisibleTuples(np.zeros((len(quasi), 0), np.int32), np.zeros(0, np.int64))
            return table_of(places, SuppressedTuples(np.zeros(0, np.intp), nobody), quasi, counts.names)
        owners = np.zeros(len(places), np.intp)
        owners[class_starts(places, len(quasi))[1:]] = 1
        return table_of(places, deal(pieces, (np.cumsum(owners), places.counts), coins), quasi, counts.names)


def codes_of(classes: tuple[Classes, ...], codes: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    """Return codes from 1 on, and MISSING for what is missing."""
    found = []
    for column, code in zip(classes, codes, strict=True):
        there = column.values().is_valid().to_numpy(zero_copy_only=False)
        found.append(np.where(there[code], code + 1, MISSING))
    return np.stack(found).astype(np.int32)


def deal(pieces: SuppressedTuples, cells: tuple[NDArray[np.intp], NDArray[np.int64]], coins: Coins) -> SuppressedTuples:
    """Deal the rows of each tuple's cells, which differ in other columns, out to its pieces at random.

    `cells` are the tuple and the rows of each; the pieces that come back name cells as their origins.
    """
    owners, rows = cells
    pieces_of = np.bincount(pieces.origins, minlength=int(owners.max(initial=-1)) + 1)
    mixed = (pieces_of > 1)[owners] & (np.bincount(owners)[owners] > 1)
    single = np.repeat(np.flatnonzero(mixed), rows[mixed])
    drawn = coins.below(2**62, len(single)) if len(single) else np.zeros(0, np.int64)
    cards = np.concatenate([np.flatnonzero(~mixed), single[np.lexsort((drawn, owners[single]))]])
    times = np.concatenate([rows[~mixed], np.ones(len(single), np.int64)])
    order = np.argsort(owners[cards], kind="stable")
    cards, times = cards[order], times[order]
    sequence = np.argsort(pieces.origins, kind="stable")
    card, piece, shared = overlaps(times, pieces.shown.rows[sequence])
    return SuppressedTuples(cards[card], VisibleTuples(pieces.shown.codes[:, sequence[piece]], shared))


def table_of(places: Counts, pieces: SuppressedTuples, quasi: tuple[str, ...], released: tuple[str, ...]) -> Blanked:
    """Return a table of pieces that name cells as their origins: quasi-identifiers as they show, others as kept."""
    codes = places.codes()
    columns: dict[str, tuple[pa.Array, NDArray[np.intp]]] = {}
    for place, (name, classes) in enumerate(zip(places.names, places.classes, strict=True)):
        values = classes.values()
        if name in quasi:
            shown = pieces.shown.codes[place]
            values = pa.concat_arrays([values, pa.nulls(1, values.type)])
            columns[name] = kept_values(values, np.where(shown == MISSING, len(values) - 1, shown - 1))
        else:
            columns[name] = kept_values(values, codes[place][pieces.origins])
    columns = {name: columns[name] for name in released}
    return Blanked.of(
        {name: values for name, (values, _) in columns.items()},
        [code for _, code in columns.values()],
        pieces.shown.rows,
        quasi,
    )
