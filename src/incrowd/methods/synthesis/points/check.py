"""The file of points, read again: every point where its cell says, in order, and no cell with fewer than k."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pyarrow as pa

from incrowd.core.claims.claim import Claim
from incrowd.core.claims.privacy import ApproximatePrivacy, Blending, ZeroKnowledge
from incrowd.core.keys import grouped
from incrowd.core.plan import Output
from incrowd.core.statement import Statement
from incrowd.core.steps.counts import NoiseWhenSmall, SuppressCounts
from incrowd.core.steps.rows import KeepRows, keeps_rows_of
from incrowd.core.steps.samples import EveryRow
from incrowd.core.steps.step import ClaimBasis, Step
from incrowd.engines.readers.sources import open_source
from incrowd.methods.synthesis.points.accuracy import Accuracy
from incrowd.methods.synthesis.points.contents import Contents, changed, contents, impossible, reach_squared
from incrowd.methods.synthesis.points.grid import PointGrid
from incrowd.methods.synthesis.points.output import MEAN_ERROR, Points
from incrowd.methods.synthesis.points.steps import IntoCells, LipschitzError, PlacePoints, SampleOfCells
from incrowd.verifier.check import CheckOutcome, Problem, maybe, one

STEPS: tuple[type[Step], ...] = (
    KeepRows,
    EveryRow,
    SampleOfCells,
    IntoCells,
    SuppressCounts,
    NoiseWhenSmall,
    PlacePoints,
)
CLAIMS: tuple[type[Claim], ...] = (ApproximatePrivacy, ZeroKnowledge, Blending, LipschitzError)
ORDER = (
    maybe(KeepRows),
    one(EveryRow, SampleOfCells),
    one(IntoCells),
    one(SuppressCounts, NoiseWhenSmall),
    one(PlacePoints),
)
_TOLERANCE = 1 + 1e-6  # the second route computes with floats


def contradiction(statement: Statement) -> Problem | None:
    """Return where steps, unit and columns contradict each other, or None."""
    basis, unit = statement.basis, statement.basis.unit
    kept, grid, noise = basis.find(KeepRows), basis.need(IntoCells), basis.find(NoiseWhenSmall)
    if not keeps_rows_of(kept, unit):
        return Problem("the rows kept of each person are not those of the guarantee's unit")
    if grid.names != statement.released:
        return Problem("the coordinates are not the released columns")
    if not grid.columns or any(impossible(side) for side in grid.columns):
        return Problem("a side of the box cannot have such bounds, or as many pieces")
    if noise is not None and not noise.clamp:
        return Problem("the noise is not held between 0 and k − 1")
    return None


def looks(statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
    """Read the points of the file: their columns, their places and order, and how many are in each cell."""
    (file,) = files
    source, names = open_source(str(file)), statement.basis.need(IntoCells).names
    strange = None if tuple(source.names) == names else Problem("the columns are not the coordinates of the grid")
    yield CheckOutcome("columns in the file", strange, "they are the coordinates, and no others")
    if strange is None:
        yield from _looks(statement, source.batches(names))


def recount(statement: Statement, output: Output) -> Problem | None:
    """Hold points in memory against the statement."""
    if not isinstance(output, Points):
        return Problem("it is not a table of points")
    if tuple(output.schema.names) != statement.basis.need(IntoCells).names:
        return Problem("the columns are not the coordinates of the grid")
    return next((look.problem for look in _looks(statement, output.batches()) if look.problem is not None), None)


def reopen(statement: Statement, files: tuple[Path, ...]) -> Points:
    """Read what was published, as anyone can: each point stands for its cell."""
    step = statement.basis.need(IntoCells)
    found = _contents(statement, open_source(str(files[0])).batches(step.names))
    grid = PointGrid.laid(step.columns)
    keys = grid.cells.layout.pack([column.astype("int32") for column in found.cells.T])
    return Points(grid, *grouped(keys, found.counts), _accuracy(statement))


def recompute(claim: Claim, basis: ClaimBasis) -> Problem | None:
    """Derive again how far points move and how many noise adds or takes away; nothing else is the method's own."""
    if not isinstance(claim, LipschitzError):
        return Problem("the claim is none of this method's own", undecided=True)
    grid, place, noise = basis.need(IntoCells), basis.need(PlacePoints).at, basis.find(NoiseWhenSmall)
    reach = reach_squared(grid.columns, place)
    if not reach <= Fraction(claim.moves) ** 2 <= reach * Fraction(_TOLERANCE) ** 2:
        return Problem("points lie further from what they stand for than it says, or nearer")
    if noise is None:
        bounded = (claim.expected, claim.likely) != (None, None)
        return Problem("nothing public bounds how many points suppression drops") if bounded else None
    if claim.expected is None or claim.likely is None:
        return Problem("it leaves out how many points noise adds or takes away")
    found = changed(grid.size, noise.k, noise.epsilon)
    if found is None:
        return Problem("the sums of such noise are too long; the claim was not derived again", undecided=True)
    stated = zip(found, (float(claim.expected), float(claim.likely)), strict=True)
    if any(max(derived, number) > min(derived, number) * _TOLERANCE for derived, number in stated):
        return Problem(f"noise changes up to {found[0]:.6g} points on average, {found[1]:.6g} 19 times in 20")
    return None


def _looks(statement: Statement, batches: Iterable[pa.RecordBatch]) -> Iterator[CheckOutcome]:
    found = _contents(statement, batches)
    yield CheckOutcome("places of the points", _places(found), "each lies where its cell says, in the order of cells")
    number = f"{found.total:,} points in {len(found.counts):,} cells"
    yield CheckOutcome("points in each cell", _crowds(statement, found), number)


def _contents(statement: Statement, batches: Iterable[pa.RecordBatch]) -> Contents:
    basis = statement.basis
    return contents(basis.need(IntoCells).columns, basis.need(PlacePoints).at, batches)


def _places(found: Contents) -> Problem | None:
    if found.misplaced:
        return Problem("some point is missing, outside the box, or not where a cell puts its points")
    return None if found.ordered else Problem("the points are not in the order of their cells")


def _crowds(statement: Statement, found: Contents) -> Problem | None:
    """Return that a cell has too few points, or that the evidence says otherwise; below k noise gives any number."""
    suppressed, evidence = statement.basis.find(SuppressCounts), statement.evidence
    if suppressed is not None and (found.counts < suppressed.k).any():
        return Problem("some cell has fewer points than k")
    if (evidence.get("rows"), evidence.get("cells with points")) != (found.total, len(found.counts)):
        return Problem("there are not as many points or cells as the certificate's evidence says")
    error = _accuracy(statement).mean_error(found.total)
    if evidence.get(MEAN_ERROR) != (None if error is None else str(error)):
        return Problem("the error of a mean is not the one that the certificate's evidence says")
    return None


def _accuracy(statement: Statement) -> Accuracy:
    """Return the numbers of the claim about slowly changing functions, as it states them."""
    claims = (claim for claim in statement.claims if isinstance(claim, LipschitzError))
    claim = next(claims, None)
    return Accuracy(Decimal("Infinity")) if claim is None else Accuracy(claim.moves, claim.expected, claim.likely)
