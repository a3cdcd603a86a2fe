"""Cell suppression: single cells are left out, as few as can be found, until nobody stands alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from incrowd.core.plan import Plan
from incrowd.core.steps.rows import keep_rows, recode
from incrowd.core.steps.step import Step, fold
from incrowd.criteria.groups import class_starts
from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.cells import released_cells
from incrowd.methods.anonymity.suppression.dealing import codes_of, dealt, table_of
from incrowd.methods.anonymity.suppression.fewest import Crowded, Pieces, suppressed
from incrowd.methods.anonymity.suppression.shown import Shown
from incrowd.methods.anonymity.suppression.steps import ArrangeBlanks, LeaveOutCells, Missing, demanded
from incrowd.methods.anonymity.syntactic.demands import quasi_identifiers

if TYPE_CHECKING:
    from incrowd.core.cells import Cells
    from incrowd.core.coins import Coins
    from incrowd.core.counts import Counts
    from incrowd.core.schema import Schema
    from incrowd.core.table import Table
    from incrowd.methods.anonymity.suppression.output import Blanked


@dataclass(frozen=True)
class CellSuppression:
    """k-anonymity by leaving out single cells, few of them; the other cells stay as they are.

    Promise: every combination of the quasi-identifiers in the output, missing cells being values of their own, occurs
    at least k times; with `missing: matches`, only that at least k rows match each row where a missing cell matches
    anything; with `subsets`, the same of every so many of the quasi-identifiers.  These are properties of the output's
    form.  Nothing else is promised and there is no ε: the cells were chosen by looking at all rows, and sensitive
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
        """Promise a form, from the schema alone; rows that match need not look alike."""
        steps = self.steps(schema)
        settings = {**demanded(self.k, self.subsets), "missing": self.missing}
        smallest = 1 if self.wild else self.k
        return Plan(self.name, steps, fold(steps, schema.unit), {}, self.release, smallest, settings)

    def steps(self, schema: Schema) -> tuple[Step, ...]:
        """Return the steps: whose rows, which levels, how many must agree, which order."""
        recoded = recode(self.cells(schema))
        leave_out = LeaveOutCells(
            quasi_identifiers(schema),
            demanded(self.k, self.subsets),
            Missing(self.missing),
            {name: Fraction(weight) for name, weight in self.importance.items()},
        )
        return (*keep_rows(schema.unit), recoded, leave_out, ArrangeBlanks())

    def release(self, table: Table, coins: Coins) -> Blanked:
        """Count the rows of each tuple in one pass, and leave out cells on the counts.

        Where some rows of a tuple lose cells and others do not, coins decide which, so that what is missing tells
        nothing about the columns that stay.
        """
        schema = table.schema
        return self.blanked(table.engine.count(table.rows, self.cells(schema), *table.kept(coins)), schema, coins)

    def blanked(self, counts: Counts, schema: Schema, coins: Coins) -> Blanked:
        """Return the table with missing cells; without rows if there are fewer than k."""
        quasi = quasi_identifiers(schema)
        tuples = counts.marginal(quasi)
        shown = Shown(codes_of(tuples.classes, tuples.codes()), tuples.counts)
        weights = np.array([float(self.importance.get(name, 1)) for name in quasi])
        pieces = suppressed(shown, Crowded(self.k, self.subsets, self.wild), weights) if len(tuples) else None
        places = counts.marginal([*quasi, *(name for name in counts.names if name not in quasi)])
        if pieces is None:
            nobody = Shown(np.zeros((len(quasi), 0), np.int32), np.zeros(0, np.int64))
            return table_of(places, Pieces(np.zeros(0, np.intp), nobody), quasi, counts.names)
        owners = np.zeros(len(places), np.intp)
        owners[class_starts(places, len(quasi))[1:]] = 1
        return table_of(places, dealt(pieces, (np.cumsum(owners), places.counts), coins), quasi, counts.names)
