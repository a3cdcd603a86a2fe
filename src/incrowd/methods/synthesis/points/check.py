"""The file of points, read again: every point where its cell says, in order, and no cell with fewer than k."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.core.claims.claim import Claim
from incrowd.core.domain import ENUMERABLE, Type
from incrowd.core.keys import grouped
from incrowd.core.reading import read
from incrowd.core.schema import Outside
from incrowd.core.statement import Statement
from incrowd.core.steps.counts import NoiseWhenSmall, SuppressCounts
from incrowd.core.steps.rows import KeepRows, keeps_rows_of
from incrowd.core.steps.step import ClaimBasis
from incrowd.engines.readers.sources import open_source
from incrowd.errors import InvalidParameter
from incrowd.methods.synthesis.points.accuracy import Accuracy
from incrowd.methods.synthesis.points.grid import PointGrid
from incrowd.methods.synthesis.points.output import MEAN_ERROR, Points
from incrowd.methods.synthesis.points.steps import (
    IntoCells,
    LipschitzError,
    Placement,
    PlacePoints,
    Side,
)
from incrowd.verifier.check import Check, CheckOutcome, Problem

_TOLERANCE = 1 + 1e-6  # the second route computes with floats


class PointsCheck(Check):
    """The file of points: every point where its cell says, in order, and no cell with fewer than k."""

    def contradiction(self, statement: Statement) -> Problem | None:
        basis, unit = statement.basis, statement.basis.unit
        rows, grid, noise = basis.find(KeepRows), basis.need(IntoCells), basis.find(NoiseWhenSmall)
        if not keeps_rows_of(rows, unit):
            return Problem("the rows kept of each person are not those of the guarantee's unit")
        if grid.names != statement.released:
            return Problem("the coordinates are not the released columns")
        if not grid.columns or any(impossible(side) for side in grid.columns):
            return Problem("a side of the box cannot have such bounds, or as many pieces")
        if noise is not None and not noise.clamp:
            return Problem("the noise is not held between 0 and k − 1")
        return None

    def inspect(self, statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
        (file,) = files
        source, names = open_source(str(file)), statement.basis.need(IntoCells).names
        problem = None if tuple(source.names) == names else Problem("the columns are not the coordinates of the grid")
        yield CheckOutcome("columns in the file", problem, "they are the coordinates, and no others")
        if problem is None:
            yield from _outcomes(statement, source.batches(names))

    def recount(self, statement: Statement, output: Any) -> Problem | None:
        if not isinstance(output, Points):
            return Problem("it is not a table of points")
        if tuple(output.schema.names) != statement.basis.need(IntoCells).names:
            return Problem("the columns are not the coordinates of the grid")
        return next(
            (outcome.problem for outcome in _outcomes(statement, output.batches()) if outcome.problem is not None), None
        )

    def reopen(self, statement: Statement, files: tuple[Path, ...]) -> Points:
        step = statement.basis.need(IntoCells)
        published = _contents(statement, open_source(str(files[0])).batches(step.names))
        grid = PointGrid.laid(step.columns)
        keys = grid.cells.layout.pack([column.astype("int32") for column in published.cells.T])
        return Points(grid, *grouped(keys, published.counts), _accuracy(statement))

    def recompute(self, claim: Claim, basis: ClaimBasis) -> Problem | None:
        if not isinstance(claim, LipschitzError):
            return super().recompute(claim, basis)
        grid, place, noise = basis.need(IntoCells), basis.need(PlacePoints).at, basis.find(NoiseWhenSmall)
        reach = reach_squared(grid.columns, place)
        if not reach <= Fraction(claim.moves) ** 2 <= reach * Fraction(_TOLERANCE) ** 2:
            return Problem("points lie further from what they stand for than it says, or nearer")
        if noise is None:
            bounded = (claim.expected, claim.likely) != (None, None)
            return Problem("nothing public bounds how many points suppression drops") if bounded else None
        if claim.expected is None or claim.likely is None:
            return Problem("it leaves out how many points noise adds or takes away")
        changes = changed(grid.size, noise.k, noise.epsilon)
        if changes is None:
            return Problem("the sums of such noise are too long; the claim was not recomputed", undecided=True)
        stated = zip(changes, (float(claim.expected), float(claim.likely)), strict=True)
        if any(max(derived, number) > min(derived, number) * _TOLERANCE for derived, number in stated):
            return Problem(f"noise changes up to {changes[0]:.6g} points on average, {changes[1]:.6g} 19 times in 20")
        return None


def _outcomes(statement: Statement, batches: Iterable[pa.RecordBatch]) -> Iterator[CheckOutcome]:
    published = _contents(statement, batches)
    yield CheckOutcome(
        "places of the points", _places(published), "each lies where its cell says, in the order of cells"
    )
    number = f"{published.total:,} points in {len(published.counts):,} cells"
    yield CheckOutcome("points in each cell", _crowds(statement, published), number)


def _contents(statement: Statement, batches: Iterable[pa.RecordBatch]) -> Contents:
    basis = statement.basis
    return contents(basis.need(IntoCells).columns, basis.need(PlacePoints).at, batches)


def _places(published: Contents) -> Problem | None:
    if published.misplaced:
        return Problem("some point is missing, outside the box, or not where a cell puts its points")
    return None if published.ordered else Problem("the points are not in the order of their cells")


def _crowds(statement: Statement, published: Contents) -> Problem | None:
    """Return a problem if a cell has too few points, or other evidence; below k noise gives any number."""
    suppressed, evidence = statement.basis.find(SuppressCounts), statement.evidence
    if suppressed is not None and (published.counts < suppressed.k).any():
        return Problem("some cell has fewer points than k")
    if (evidence.get("rows"), evidence.get("cells with points")) != (published.total, len(published.counts)):
        return Problem("there are not as many points or cells as the certificate's evidence says")
    error = _accuracy(statement).mean_error(published.total)
    if evidence.get(MEAN_ERROR) != (None if error is None else str(error)):
        return Problem("the error of a mean is not the one that the certificate's evidence says")
    return None


def _accuracy(statement: Statement) -> Accuracy:
    """Return the numbers of the claim about slowly changing functions, as it states them."""
    claims = (claim for claim in statement.claims if isinstance(claim, LipschitzError))
    claim = next(claims, None)
    return Accuracy(Decimal("Infinity")) if claim is None else Accuracy(claim.moves, claim.expected, claim.likely)


_EPOCH = date(1970, 1, 1).toordinal()
_SMALLEST_NOISE = Fraction(1, 10**4)  # below, the sums of the noise become too long to write out
_ENOUGH = 60.0  # e^(−60) of the noise lies beyond


def ends(side: Side) -> tuple[Fraction, Fraction]:
    """Return the bounds of a side; a day is its number, counted from 1970.

    >>> ends(Side("day", Type.DATE, "1970-01-01", "1970-01-10", 2, Outside.ENDS))
    (Fraction(0, 1), Fraction(9, 1))
    """
    if side.type is Type.DATE:
        first, last = (date.fromisoformat(text).toordinal() - _EPOCH for text in (side.low, side.high))
        return Fraction(first), Fraction(last)
    return Fraction(side.low), Fraction(side.high)


def impossible(side: Side) -> bool:
    """Whether no grid has such a side: without order between its bounds, or in more pieces than can be told apart."""
    try:
        low, high = ends(side)
    except (ValueError, ZeroDivisionError):
        return True
    whole = low.denominator == high.denominator == 1
    if side.type is Type.TEXT or side.outside is Outside.OTHER or not 1 <= side.pieces <= ENUMERABLE:
        return True
    if side.type is not Type.DECIMAL:
        return not whole or side.pieces > high - low + 1
    return low >= high or any(here >= there for here, there in itertools.pairwise(cuts(side)))


def _pieces(side: Side) -> int:
    """Return the number of pieces, which must be such that they can be listed."""
    if side.pieces > ENUMERABLE:
        raise InvalidParameter(f"a side of a box has at most {ENUMERABLE:,} pieces.")
    return side.pieces


def cuts(side: Side) -> list[int] | list[float]:
    """Return where the pieces of a side begin, and last where it ends: beyond the last whole number or day.

    >>> cuts(Side("age", Type.INTEGER, "0", "9", 4, Outside.ENDS))
    [0, 2, 5, 7, 10]
    """
    low, high = ends(side)
    if side.type is Type.DECIMAL:
        return [float(low + Fraction(piece, side.pieces) * (high - low)) for piece in range(_pieces(side) + 1)]
    first, number = int(low), int(high - low) + 1
    return [first + piece * number // side.pieces for piece in range(_pieces(side) + 1)]


def middles(side: Side) -> list[int] | list[float]:
    """Return the center of each piece; of an even number of days it is a day before the middle.

    >>> middles(Side("age", Type.INTEGER, "0", "9", 4, Outside.ENDS))
    [0.5, 3.0, 5.5, 8.0]
    """
    low, high = ends(side)
    if side.type is Type.DECIMAL:
        halves = range(1, 2 * _pieces(side), 2)
        return [float(low + Fraction(half, 2 * side.pieces) * (high - low)) for half in halves]
    pairs = itertools.pairwise(cuts(side))
    if side.type is Type.DATE:
        return [int(here + there - 1) // 2 for here, there in pairs]
    return [float(Fraction(here + there - 1) / 2) for here, there in pairs]


def reach_squared(sides: Iterable[Side], place: Placement) -> Fraction:
    """Return the square of how far a value and its point are apart at most, sides of the box being 1 long.

    >>> side = Side("age", Type.INTEGER, "0", "99", 10, Outside.ENDS)
    >>> reach_squared([side, side], Placement.CENTERS) == 2 * Fraction(45, 1000) ** 2
    True
    """
    return sum((_reach(side, place) ** 2 for side in sides), Fraction(0))


def changed(number: int, k: int, noise: Fraction) -> tuple[float, float] | None:
    """Return how many points noise adds or takes away: on average, and 19 times in 20, at most; None if not summed.

    >>> [round(each, 4) for each in changed(10, 5, Fraction(1))]
    [8.5092, 23.0792]
    """
    if noise < _SMALLEST_NOISE:
        return None
    rate = min(float(noise), 700.0)
    ratio = math.exp(-rate)
    z = np.arange(1, math.ceil(_ENOUGH / rate) + 2, dtype=np.float64)
    masses = 2.0 * (1.0 - ratio) / (1.0 + ratio) * np.exp(-rate * z)
    mean = float(np.sum(z * masses))
    variance = float(np.sum(z * z * masses)) - mean**2
    most = float(number * (k - 1))
    return min(most, number * mean), min(most, number * mean + math.sqrt(19.0 * number * variance))


def _reach(side: Side, place: Placement) -> Fraction:
    low, high = ends(side)
    step = 0 if side.type is Type.DECIMAL else 1
    worst = Fraction(0)
    for (here, there), middle in zip(itertools.pairwise(cuts(side)), middles(side), strict=True):
        first, last, center = Fraction(here), Fraction(there) - step, Fraction(middle)
        worst = max(worst, last - first if place is Placement.UNIFORM else max(center - first, last - center))
    return worst / (high - low + step)


Numbers = NDArray[np.int64]
Pieces = tuple[NDArray[Any], NDArray[Any]]
"""Where the pieces of a side begin, and their centers."""


@dataclass(frozen=True, eq=False)
class Contents:
    """What a table of points holds: one cell after another, a piece of each side, and how many points are in it.

    `misplaced` points are missing, outside the box or not where a cell puts its points; cells that are not `ordered`
    may be there more than once.
    """

    cells: Numbers
    counts: Numbers
    misplaced: int
    ordered: bool

    @property
    def total(self) -> int:
        """How many points there are."""
        return int(self.counts.sum())


def contents(sides: tuple[Side, ...], place: Placement, batches: Iterable[pa.RecordBatch]) -> Contents:
    """Go through all points; those of a cell stand together, so a cell ends where the next point has another."""
    pieces = [(np.asarray(cuts(side)), np.asarray(middles(side))) for side in sides]
    cells, counts = [np.zeros((0, len(sides)), np.int64)], [np.zeros(0, np.int64)]
    misplaced = 0
    for batch in batches:
        columns = [_placed(side, place, batch.column(number), pieces[number]) for number, side in enumerate(sides)]
        good = np.logical_and.reduce([flags for _, flags in columns])
        misplaced += int(np.count_nonzero(~good))
        points = np.stack([codes[good] for codes, _ in columns], axis=1)
        starts = np.flatnonzero(np.any(points[1:] != points[:-1], axis=1)) + 1
        first = np.concatenate([np.zeros(min(1, len(points)), np.int64), starts])
        cells.append(points[first])
        counts.append(np.diff(np.append(first, len(points))))
    return _joined(np.concatenate(cells), np.concatenate(counts), misplaced)


def _joined(cells: Numbers, counts: Numbers, misplaced: int) -> Contents:
    """Join what two batches hold of one cell, and see whether each cell comes after the one before."""
    new = np.append(np.ones(min(1, len(cells)), bool), np.any(cells[1:] != cells[:-1], axis=1))
    totals = np.add.reduceat(counts, np.flatnonzero(new)) if len(counts) else counts
    return Contents(cells[new], totals, misplaced, _rising(cells[new]))


def _rising(cells: Numbers) -> bool:
    """Whether each cell comes after the one before: larger at the first side at which they differ."""
    higher = np.zeros(max(0, len(cells) - 1), bool)
    same = ~higher
    for column in cells.T:
        higher |= same & (column[1:] > column[:-1])
        same &= column[1:] == column[:-1]
    return bool(np.all(higher))


def _placed(side: Side, place: Placement, column: pa.Array, pieces: Pieces) -> tuple[Numbers, NDArray[np.bool_]]:
    """Return the piece of each coordinate, and whether it is where a point of that piece can be."""
    limits, centers = pieces
    plain = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    centered = side.type is Type.INTEGER and place is Placement.CENTERS
    values = read(plain, Type.DECIMAL if centered else side.type).values
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    stored = values.cast(pa.int32()) if pa.types.is_date(values.type) else values
    numbers = pc.fill_null(stored, 0).to_numpy(zero_copy_only=False)
    codes = np.searchsorted(limits[1:-1], numbers, side="right").astype(np.int64)
    highest = limits[-1] if side.type is Type.DECIMAL else limits[-1] - 1
    inside = valid & (numbers >= limits[0]) & (numbers <= highest)
    return codes, inside & (numbers == centers[codes]) if place is Placement.CENTERS else inside
