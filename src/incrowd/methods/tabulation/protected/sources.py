"""Sources: what rows contribute to finest cells, and tables of cells as they come."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.core.cells import Cells
from incrowd.core.recoding import Recoding
from incrowd.errors import SourceInvalid
from incrowd.methods.shared.columns import row_limits
from incrowd.methods.tabulation.protected.frame import TableFrame, Whole
from incrowd.methods.tabulation.protected.rules import CellFacts, Contributions

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.counts import Counts
    from incrowd.core.table import Table


_LARGEST = 2**53
"""Sums stay below this, so that solvers can write them."""


@dataclass(frozen=True)
class CellMeasure:
    """What the cells of a table add up: rows or a value, perhaps times a weight, merged by holding; can it be negative.

    Each is the name of a column.
    """

    value: str | None = None
    holding: str | None = None
    weight: str | None = None
    signed: bool = False

    @property
    def columns(self) -> list[str]:
        """The columns that are read beside those of the table."""
        return [name for name in (self.holding, self.value, self.weight) if name is not None]


@dataclass(frozen=True, eq=False)
class Counted:
    """What the rows hold: for each tuple its finest cell, the name of its holder, its number, and how many rows."""

    contributions: Contributions
    names: pa.Array | None

    @classmethod
    def of(cls, table: Table, frame: TableFrame, levels: dict[str, int], measure: CellMeasure, coins: Coins) -> Counted:
        """Count the rows by their finest cells and, where they are named, by holder, number and weight, in one pass."""
        columns = [*levels.items(), *((name, 0) for name in measure.columns)]
        cells = Cells(tuple(Recoding(table.schema[name], level) for name, level in columns))
        counts = table.engine.count(table.rows, cells, *row_limits(table, coins))
        codes = dict(zip(counts.names, counts.codes(), strict=True))
        leaves = [_leaf_places(counts, axis.column, frame, n)[codes[axis.column]] for n, axis in enumerate(frame.axes)]
        places = np.ravel_multi_index(leaves, frame.leaf_shape)
        size, names = len(counts), None
        holders, amounts = np.full(size, -1, np.int64), np.ones(size, np.int64)
        if measure.holding is not None:
            names = counts.classes[counts.names.index(measure.holding)].labels()
            named = names.is_valid().to_numpy(zero_copy_only=False)
            holders = np.where(named, np.arange(len(names)), -1)[codes[measure.holding]].astype(np.int64)
        if measure.value is not None:
            amounts = _amounts(counts.classes[counts.names.index(measure.value)].values())[codes[measure.value]]
        rows, weights = counts.counts, None
        if measure.weight is not None:
            values = _numbers(counts.classes[counts.names.index(measure.weight)].values())[codes[measure.weight]]
            weights = np.repeat(values, rows)
            places, holders, amounts = (np.repeat(part, rows) for part in (places, holders, amounts))
            rows, amounts = np.ones(len(places), np.int64), _weighted(places, amounts.astype(np.float64) * weights)
        _refuse_huge(amounts, rows)
        return cls(Contributions(places, holders, amounts, rows, weights, measure.signed), names)

    def leaves(self, frame: TableFrame) -> Whole:
        """Return the sums of the finest cells."""
        sums = np.zeros(int(np.prod(frame.leaf_shape)), np.int64)
        contributions = self.contributions
        np.add.at(sums, contributions.cells, contributions.amounts * contributions.rows)
        return sums.reshape(frame.leaf_shape)


def _leaf_places(counts: Counts, name: str, frame: TableFrame, number: int) -> NDArray[np.intp]:
    axis = frame.axes[number]
    labels = counts.classes[counts.names.index(name)].open_labels().to_pylist()
    return np.array([axis.ranges[axis.place(label)][0] for label in labels] or [0], np.intp)


def _amounts(values: pa.Array) -> Whole:
    """Return each number as a whole one; what is missing contributes nothing."""
    whole = (
        pc.round(pc.cast(values, pa.float64()), round_mode="half_to_even")
        if pa.types.is_floating(values.type)
        else values
    )
    return np.append(pc.fill_null(pc.cast(whole, pa.int64()), 0).to_numpy(zero_copy_only=False), 0).astype(np.int64)


def _numbers(values: pa.Array) -> NDArray[np.float64]:
    """Return the weight of each class of rows; a weight that is missing or negative is refused."""
    weights = np.append(pc.cast(values, pa.float64()).to_numpy(zero_copy_only=False), np.nan)
    if not np.all(weights[:-1] >= 0):
        raise SourceInvalid("a weight is negative or not a number: correct it, or leave its row out.")
    return weights


def _weighted(cells: NDArray[np.intp], products: NDArray[np.float64]) -> Whole:
    """Return weighted contributions as whole numbers next to them that add up to the rounded sum of each finest cell.

    Those with the largest remainders are rounded up, the first rows first.

    >>> _weighted(np.array([0, 0, 0, 1]), np.array([1.4, 1.4, 1.4, 2.5])).tolist()
    [2, 1, 1, 2]
    """
    if np.isnan(products).any():
        raise SourceInvalid("a row has no weight: give it one, or leave it out.")
    whole = np.floor(products)
    rest = products - whole
    order = np.lexsort((np.arange(len(cells)), -rest, cells))
    rank = np.empty(len(cells), np.int64)
    rank[order] = np.arange(len(cells)) - np.searchsorted(cells[order], cells[order])
    more = np.rint(np.bincount(cells, rest)) if len(cells) else np.zeros(1)
    return (whole + (rank < more[cells])).astype(np.int64)


def _refuse_huge(amounts: Whole, rows: Whole) -> None:
    if float(np.abs(amounts).astype(np.float64) @ rows.astype(np.float64)) >= _LARGEST:
        raise SourceInvalid("the sum of all numbers is beyond 2^53: tabulate them in thousands or millions.")


@dataclass
class GivenRows:
    """A summary that keeps the rows of a table of cells, as text."""

    names: tuple[str, ...]
    most: int
    _parts: list[pa.Table] = field(default_factory=list)

    def add(self, batch: pa.RecordBatch) -> None:
        """Keep some rows, up to one more than the table can have."""
        if sum(map(len, self._parts)) <= self.most:
            texts = {name: _text(batch.column(name)) for name in self.names}
            self._parts.append(pa.table(texts))

    def merge(self, other: GivenRows) -> None:
        """Take over what another one read of other rows."""
        self._parts += other._parts

    def rows(self) -> list[tuple[str | None, ...]]:
        """Return all rows."""
        return [
            row for part in self._parts for row in zip(*(part[name].to_pylist() for name in self.names), strict=True)
        ]


def _text(column: pa.Array) -> pa.Array:
    return (column.dictionary_decode() if pa.types.is_dictionary(column.type) else column).cast(pa.string())


def given_facts(table: Table, frame: TableFrame, value: str, beside: tuple[str | None, tuple[str, ...]]) -> CellFacts:
    """Read a table of cells and refuse one whose cells are missing, doubled, negative, contradict, or do not add up.

    `beside` names the columns that say how many contributed to a cell, and its largest contributions.
    """
    contributors, largest = beside
    numbers = (value, *([contributors] if contributors else []), *largest)
    names = (*(axis.column for axis in frame.axes), *numbers)
    rows = table.engine.learn(table.rows, list(names), partial(GivenRows, names, frame.size)).rows()
    entries = np.full((len(numbers), frame.size), -1, np.int64)
    for line, row in enumerate(rows, 1):
        labels, texts = row[: len(frame.axes)], row[len(frame.axes) :]
        cell = _cell(frame, labels, line)
        if entries[0, cell] >= 0:
            raise SourceInvalid(f"row {line} of the table has a cell that an earlier row has already.")
        entries[:, cell] = [_whole(text, name, line) for text, name in zip(texts, numbers, strict=True)]
    missing = np.flatnonzero(entries[0] < 0)
    if len(missing):
        raise SourceInvalid(
            f"the table lacks {len(missing):,} of {frame.size:,} cells, among them {frame.place(int(missing[0]))}: "
            "every cell and every total has a row, empty ones with 0."
        )
    cells = entries.reshape(len(numbers), *frame.shape)
    for name, part in zip(numbers[: 2 if contributors else 1], cells, strict=False):
        odd = frame.odd_sum(part, np.ones(frame.shape, np.bool_)) if name == value else None
        if odd is not None:
            raise SourceInvalid(
                f"the table does not add up: {name!r} at {frame.place(odd)} is not the sum of what is under it."
            )
    counts = cells[1] if contributors else cells[0]
    facts = CellFacts(cells[0], counts, cells[len(numbers) - len(largest) :])
    _refuse_contradiction(frame, facts)
    return facts


def given_contributions(frame: TableFrame, facts: CellFacts, *, counts: bool) -> Contributions:
    """Return who contributed to the finest cells of a given table, each somebody else: the table does not say who."""
    values, people = (frame.finest(part).ravel() for part in (facts.values, facts.contributors))
    if not counts and len(facts.largest):
        tops = np.cumsum([frame.finest(rank).ravel() for rank in facts.largest], axis=0)
        enough = np.vstack([tops >= values, np.ones_like(values, np.bool_)])
        people = np.minimum(people, np.where(values > 0, enough.argmax(axis=0) + 1, people))
    cells = np.flatnonzero(people > 0)
    apart = np.full(len(cells), -1, np.int64)
    return Contributions(cells, apart, np.ones(len(cells), np.int64), people[cells].astype(np.int64))


def _refuse_contradiction(frame: TableFrame, facts: CellFacts) -> None:
    """Refuse cells with a number and nobody who contributed, and largest contributions out of order or too large.

    The rules would take such a cell for one that is safe.
    """
    nobody = (facts.values > 0) & (facts.contributors == 0)
    if nobody.any():
        raise SourceInvalid(
            f"the table contradicts itself: the cell {frame.place(_first(nobody))} has a number above 0 and no "
            "contributors."
        )
    rising = (np.diff(facts.largest, axis=0) > 0).any(axis=0) | (facts.largest.sum(axis=0) > facts.values)
    if rising.any():
        raise SourceInvalid(
            f"the table contradicts itself: the largest contributions to the cell {frame.place(_first(rising))} do not "
            "fall from one to the next, or are more than its number."
        )


def _first(flags: NDArray[np.bool_]) -> list[int]:
    return [int(node) for node in np.argwhere(flags)[0]]


def _cell(frame: TableFrame, labels: tuple[str | None, ...], line: int) -> int:
    nodes = []
    for axis, label in zip(frame.axes, labels, strict=True):
        if label not in axis.labels:
            raise SourceInvalid(
                f"row {line} of the table has a label of {axis.column!r} that its hierarchy lacks; the total is "
                f"written {axis.labels[0]!r}."
            )
        nodes.append(axis.place(label))
    return int(np.ravel_multi_index(nodes, frame.shape))


def _whole(text: str | None, name: str, line: int) -> int:
    try:
        number = int(text or "")
    except ValueError:
        raise SourceInvalid(f"row {line} of the table has no whole number in {name!r}.") from None
    if number < 0:
        raise SourceInvalid(
            f"row {line} of the table has a negative number in {name!r}: such tables are not protected here."
        )
    if number >= _LARGEST:
        raise SourceInvalid(f"row {line} of the table has a number in {name!r} beyond 2^53: tabulate in thousands.")
    return number
