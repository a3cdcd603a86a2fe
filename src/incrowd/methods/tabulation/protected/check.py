"""The file of a protected table, added up again: all cells in order, all totals right, and what is empty stays open."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import exp
from pathlib import Path

import numpy as np
import pyarrow as pa

from incrowd.core.claims.claim import Claim
from incrowd.core.plan import Output
from incrowd.core.statement import Statement
from incrowd.core.steps.bins import RecodeToBins
from incrowd.core.steps.rows import KeepRows
from incrowd.core.steps.step import ClaimBasis, Step
from incrowd.engines.readers.sources import open_source
from incrowd.methods.tabulation.attacker import Inconsistent, published_to, spread
from incrowd.methods.tabulation.frame import Flags, Whole
from incrowd.methods.tabulation.narrowing import narrowed
from incrowd.methods.tabulation.protected.claims import KeyedNoise, OpenCells, RoundedCells
from incrowd.methods.tabulation.protected.output import ProtectedCells
from incrowd.methods.tabulation.protected.steps import PerturbCells, RoundCells, SuppressCells, Tabulate
from incrowd.verifier.check import CheckOutcome, Problem, maybe, one

STEPS: tuple[type[Step], ...] = (KeepRows, RecodeToBins, Tabulate, SuppressCells, RoundCells, PerturbCells)
CLAIMS: tuple[type[Claim], ...] = (OpenCells, RoundedCells, KeyedNoise)
ORDER = (
    maybe(KeepRows),
    maybe(RecodeToBins),
    one(Tabulate),
    one(SuppressCells, RoundCells, PerturbCells),
)
_AUDITED = 300
"""Up to so many empty finest cells everything that they could be is tried."""
_TOLERANCE = 1 + 1e-6  # the second route computes with floats


def contradiction(statement: Statement) -> Problem | None:
    """Return where steps, unit and columns contradict each other, or None."""
    basis = statement.basis
    made, recoded, keyed = basis.need(Tabulate), basis.find(RecodeToBins), basis.find(PerturbCells)
    if made.given != (recoded is None):
        return Problem("the rows are cells already, or are recoded into cells: not both, and not neither")
    if recoded is not None and recoded.names != made.names:
        return Problem("the columns that are recoded are not those of the table")
    numbers = [made.number] if made.value or made.given else []  # a count of rows is no column of theirs
    if statement.released != (*made.names, *numbers):
        return Problem("the columns of the table are not the released ones")
    if keyed is not None and (keyed.record != basis.unit.column or made.value is not None):
        return Problem("the records that have keys are not those of the guarantee's unit")
    return None


def hidden(claim: Claim) -> Problem | None:
    """Return what of a claim no published file can show."""
    if isinstance(claim, OpenCells):
        words = "which cells were sensitive is not told, so that only their width was audited here"
        return Problem(f"it agrees with the steps; {words}", undecided=True)
    if isinstance(claim, RoundedCells):
        return Problem("it agrees with the steps; how far the truth is only its holder knows", undecided=True)
    return None


def recompute(claim: Claim, basis: ClaimBasis) -> Problem | None:
    """Derive the δ between nobody and one person again, by halving intervals."""
    if not isinstance(claim, KeyedNoise):
        return Problem("the claim is none of this method's own", undecided=True)
    step = basis.need(PerturbCells)
    derived = 1 - _vanishing(step.noise.allowed(1), step.variance)
    stated = float(claim.zero_to_one)
    if max(stated, derived) > min(stated, derived) * _TOLERANCE:
        return Problem(f"its δ between nobody and one person is {derived:.6g}")
    return None


def _vanishing(values: list[int], variance: Fraction) -> float:
    """Return how often one person becomes nobody under p(v) ∝ exp(a v + b v²) with mean zero and the variance."""
    if -1 not in values:
        return 0.0
    if -min(values) * max(values) == variance:
        return max(values) / (max(values) - min(values))
    above = min(v for v in values if v > 0)
    if 0 not in values and above == variance:
        return above / (above + 1)

    def row(bend: float) -> list[float]:
        low, high = -60.0, 60.0
        for _ in range(200):
            slope = (low + high) / 2
            top = max(slope * v + bend * v * v for v in values)
            weights = [exp(slope * v + bend * v * v - top) for v in values]
            low, high = (slope, high) if sum(w * v for w, v in zip(weights, values, strict=True)) < 0 else (low, slope)
        return [weight / sum(weights) for weight in weights]

    low, high = -40.0, 40.0
    for _ in range(200):
        bend = (low + high) / 2
        found = sum(p * v * v for p, v in zip(row(bend), values, strict=True))
        low, high = (bend, high) if found < variance else (low, bend)
    return row(bend)[values.index(-1)]


def looks(statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
    """Read the file: its columns, its cells, its numbers, and what could stand in its empty cells."""
    (file,) = files
    return _looks(statement, _read(file))


def recount(statement: Statement, output: Output) -> Problem | None:
    """Hold a table in memory against the statement."""
    if not isinstance(output, ProtectedCells):
        return Problem("it is not a protected table")
    found = (look.problem for look in _looks(statement, output.table))
    return next((problem for problem in found if problem is not None and not problem.undecided), None)


def reopen(statement: Statement, files: tuple[Path, ...]) -> ProtectedCells:  # noqa: ARG001 - labels are in the file
    """Read what was published, as anyone can."""
    return ProtectedCells(_read(files[0]))


def _read(file: Path) -> pa.Table:
    """Read labels as text, and the numbers of the last column as whole ones."""
    source = open_source(str(file))
    names = list(source.names)
    types = pa.schema([(name, pa.string()) for name in names[:-1]] + [(names[-1], pa.int64())])
    return pa.Table.from_batches([batch.cast(types) for batch in source.batches(names)], schema=types)


def _looks(statement: Statement, table: pa.Table) -> Iterator[CheckOutcome]:
    made = statement.basis.need(Tabulate)
    strange = table.column_names != [*made.names, made.number]
    columns = Problem("the columns are not those that the certificate says are released") if strange else None
    yield CheckOutcome("columns in the file", columns, "they are the released ones and the numbers, and no others")
    if strange:
        return
    cells = _cells(statement, table)
    yield CheckOutcome("cells in the file", cells, f"{table.num_rows:,} cells, each once and in order")
    if cells is not None:
        return
    frame, column = made.frame, table.column(made.number)
    known: Flags = column.is_valid().to_numpy().reshape(frame.shape)
    values: Whole = column.fill_null(0).to_numpy().astype(np.int64).reshape(frame.shape)
    yield CheckOutcome(
        "numbers in the file", _numbers(statement, values, known), "all are such as these steps can give"
    )
    if statement.basis.find(SuppressCells) is not None:
        text = "every empty cell could have numbers that lie far enough apart"
        yield CheckOutcome("empty cells in the file", _empty(statement, values, known), text)


def _cells(statement: Statement, table: pa.Table) -> Problem | None:
    frame = statement.basis.need(Tabulate).frame
    if table.num_rows != frame.size:
        return Problem("there are not as many cells as the certificate lists")
    for axis, nodes in zip(frame.axes, np.indices(frame.shape), strict=True):
        labels = table.column(axis.column).cast(pa.string()).to_pylist()
        if labels != [axis.labels[node] for node in nodes.ravel().tolist()]:
            return Problem("the cells are not those that the certificate lists, each once and in order")
    empty = table.column(table.num_columns - 1).null_count
    if (statement.evidence.get("cells"), statement.evidence.get("empty cells")) != (frame.size, empty):
        return Problem("there are other cells than the certificate's evidence says")
    return None


def _numbers(statement: Statement, values: Whole, known: Flags) -> Problem | None:
    basis = statement.basis
    made, rounds, keyed = basis.need(Tabulate), basis.find(RoundCells), basis.find(PerturbCells)
    suppressed = basis.find(SuppressCells)
    if np.any(values < 0):
        return Problem("some number is negative")
    if suppressed is None and not known.all():
        return Problem("some cell is empty, and these steps leave none out")
    if keyed is not None:
        small = (values > 0) & (values <= keyed.gap)
        return Problem("some count is one that is never published") if small.any() else None
    if made.frame.odd_sum(values, known) is not None:
        return Problem("some total is not the sum of what it is the total of")
    if rounds is not None and np.any(values % rounds.base):
        return Problem(f"some number is not a multiple of {rounds.base}")
    if suppressed is not None and suppressed.minimum is not None and made.value is None and made.holding is None:
        small = known & (values > 0) & (values < suppressed.minimum)
        return Problem("a count is published that is smaller than the rule allows") if small.any() else None
    return None


def _empty(statement: Statement, values: Whole, known: Flags) -> Problem | None:
    """Return that an empty cell can be inferred too closely, or that there are too many to try; or None."""
    frame, width = statement.basis.need(Tabulate).frame, statement.basis.need(SuppressCells).width
    empty = np.flatnonzero(~known.ravel())
    if not len(empty):
        return None
    least = _least(statement.basis)
    low, high = narrowed(frame, values, known, least)
    if np.any(low > high):
        return Problem("no numbers in the empty cells agree with all totals")
    if np.any((high - low).ravel()[empty] < width):
        return Problem("an empty cell follows from the others, or nearly so")
    if int((~known.ravel()[frame.leaves]).sum()) > _AUDITED:
        text = f"adding up narrows none of {len(empty):,} empty cells, which are too many to try all they could be"
        return Problem(text, undecided=True)
    try:
        smallest, largest = spread(
            published_to(frame, values, known, least),
            frame.matrix[empty],
            lambda low, high: np.asarray(high - low >= width),
        )
    except Inconsistent:
        return Problem("no numbers in the empty cells agree with all totals")
    return Problem("an empty cell can be inferred too closely") if np.any(largest - smallest < width) else None


def _least(basis: ClaimBasis) -> int:
    """Return the least number that an empty cell can have: 1, but for a sum of zero to which too few contributed."""
    return int(basis.need(Tabulate).value is None or basis.need(SuppressCells).minimum is None)
