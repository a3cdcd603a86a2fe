"""Protected tables as they are published: labels, then numbers, of which some are empty; their check and picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from markupsafe import Markup

from incrowd.core.claims.claim import Claim
from incrowd.core.statement import Statement
from incrowd.core.steps.bins import RecodeToBins
from incrowd.core.steps.step import ClaimBasis
from incrowd.core.words import counted
from incrowd.drawing.markup import Description
from incrowd.drawing.markup import table as drawn_table
from incrowd.drawing.picture import Picture
from incrowd.engines.readers.sources import open_source
from incrowd.methods.shared.outcome import Outcome, ReleasedTuples, text_of
from incrowd.methods.tabulation.protected.adjustment import AdjustCells, AdjustedCells
from incrowd.methods.tabulation.protected.attacker import Inconsistent, Together, narrowed, spread
from incrowd.methods.tabulation.protected.claims import KeyedNoise, OpenCells, RoundedCells
from incrowd.methods.tabulation.protected.frame import Flags, TableFrame, Whole
from incrowd.methods.tabulation.protected.publication import documents_of
from incrowd.methods.tabulation.protected.steps import (
    COUNT,
    PerturbCells,
    RoundCells,
    SuppressCells,
    Tabulate,
)
from incrowd.verifier.check import Check, CheckOutcome, Problem, failed, passed

if TYPE_CHECKING:
    from incrowd.core.unit import Unit


TABLE = "table"
"""The column that numbers several tables where they are seen as one."""


@dataclass(frozen=True, eq=False)
class ProtectedCells(Outcome):
    """All cells of each table in the order of the declared lines, the last column fastest.

    Several tables are a file each.  Seen as one, a column numbers them, and a cell is empty in the columns that its
    table does not have.
    """

    form: ClassVar[str] = "protected table"

    tables: tuple[pa.Table, ...]
    frames: tuple[TableFrame, ...]
    holder: Mapping[str, Any] = field(default_factory=dict)
    """What only the data holder may know: which cells are sensitive, and what the pattern weighs."""

    @property
    def parts(self) -> tuple[ProtectedCells, ...]:
        """The tables that are written to a file each."""
        if len(self.tables) == 1:
            return (self,)
        return tuple(ProtectedCells((table,), (frame,)) for table, frame in zip(self.tables, self.frames, strict=True))

    @property
    def schema(self) -> pa.Schema:
        """The names and types of the columns: labels, then numbers."""
        if len(self.tables) == 1:
            return self.tables[0].schema
        fields = {field.name: field for table in self.tables for field in table.schema}
        number = fields.pop(self.tables[0].column_names[-1])
        return pa.schema([pa.field(TABLE, pa.int32()), *fields.values(), number])

    def __len__(self) -> int:
        return sum(table.num_rows for table in self.tables)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Return the cells, table by table."""
        schema = self.schema
        for place, table in enumerate(self.tables, 1):
            columns = {name: table[name].combine_chunks() for name in table.column_names}
            columns[TABLE] = columns.get(TABLE, pa.repeat(pa.scalar(place, pa.int32()), table.num_rows))
            arrays = [columns.get(item.name, pa.nulls(table.num_rows, item.type)) for item in schema]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    @property
    def documents(self) -> dict[str, str | bytes]:
        """What is written beside the cells: crosstabs for people, and SDMX-CSV."""
        return documents_of(self.tables)

    @classmethod
    def of(
        cls, frames: Sequence[TableFrame], cells: Sequence[tuple[Whole, Flags]], number: str, holder: Mapping[str, Any]
    ) -> ProtectedCells:
        """Return tables of cells, of which some are left empty: the numbers of each, and which of them are seen."""
        tables = tuple(_table(frame, *part, number) for frame, part in zip(frames, cells, strict=True))
        return cls(tables, tuple(frames), holder)

    def released_tuples(self) -> tuple[ReleasedTuples, ...]:
        """Return the finest cells of each table with their counts, 0 where it is empty; sums do not tell of rows."""
        finest = [table.take(frame.leaves) for table, frame in zip(self.tables, self.frames, strict=True)]
        return tuple(
            ReleasedTuples(
                text_of(table.drop_columns(table.column_names[-1:])),
                table[COUNT].fill_null(0).to_numpy() if table.column_names[-1] == COUNT else None,
                faithful=False,
            )
            for table in finest
        )

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
        return {
            "cells": len(self),
            "empty cells": sum(table.column(table.num_columns - 1).null_count for table in self.tables),
        }

    def opinion(self, unit: Unit, *, private: bool) -> dict[str, str]:
        return {
            "singling out": "no rows are published, only numbers of cells",
            "linkability": "no rows are published: there is nothing to link but the numbers of cells",
            "inference": "not bounded: this release has no epsilon",
        }


def _table(frame: TableFrame, cells: Whole, visible: Flags, number: str) -> pa.Table:
    columns: dict[str, pa.Array] = {}
    for axis, nodes in zip(frame.axes, np.indices(frame.shape), strict=True):
        texts = pa.array([label for label in axis.labels if label is not None], pa.string())
        codes = np.cumsum([label is not None for label in axis.labels]) - 1
        missing = np.array([label is None for label in axis.labels])
        indices = pa.array(codes[nodes.ravel()], pa.int32(), mask=missing[nodes.ravel()])
        columns[axis.column] = pa.DictionaryArray.from_arrays(indices, texts)
    columns[number] = pa.array(cells.ravel(), pa.int64(), mask=~visible.ravel())
    return pa.table(columns)


_AUDITED = 300
"""Up to so many empty finest cells everything that they could be is tried."""
_TOLERANCE = 1 + 1e-6  # the second route computes with floats


@dataclass(frozen=True, kw_only=True)
class TableCheck(Check):
    """The file of a protected table, added up again: all cells in order, all totals right, empty cells open."""

    def contradiction(self, statement: Statement) -> Problem | None:
        basis = statement.basis
        made, recoded, keyed = basis.need(Tabulate), basis.find(RecodeToBins), basis.find(PerturbCells)
        if made.given != (recoded is None):
            return Problem("the rows are cells already, or are recoded into cells: not both, and not neither")
        if recoded is not None and recoded.names != made.names:
            return Problem("the columns that are recoded are not those of the table")
        numbers = [made.number] if made.value or made.given else []  # a count of rows is not a column of theirs
        if statement.released != (*made.names, *numbers):
            return Problem("the columns of the table are not the released ones")
        if getattr(basis.steps[-1], "tables", 1) != len(made.tables):
            return Problem("there are not as many tables protected as made")
        if keyed is not None and (keyed.record != basis.unit.column or not made.counting):
            return Problem("the records that have keys are not those of the guarantee's unit")
        return None

    def undecidable(self, claim: Claim) -> Problem | None:
        if isinstance(claim, OpenCells):
            reason = "the file does not say which cells are sensitive, so that only their width was audited here"
            return Problem(f"it agrees with the steps; {reason}", undecided=True)
        if isinstance(claim, RoundedCells | AdjustedCells):
            return Problem("it agrees with the steps; only the data holder knows the true numbers", undecided=True)
        return None

    def recompute(self, claim: Claim, basis: ClaimBasis) -> Problem | None:
        if not isinstance(claim, KeyedNoise):
            return super().recompute(claim, basis)
        step = basis.need(PerturbCells)
        derived = 1 - _vanishing(step.noise.allowed(1), step.variance)
        stated = float(claim.zero_to_one)
        if max(stated, derived) > min(stated, derived) * _TOLERANCE:
            return Problem(f"its δ between nobody and one person is {derived:.6g}")
        return None

    def inspect(self, statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
        number = len(statement.basis.need(Tabulate).tables)
        tables = tuple(map(_read, files[:number]))
        yield from _outcomes(statement, tables)
        problem = _differing(tables, files[number:])
        yield CheckOutcome("crosstabs", problem, "they hold what the table holds, and nothing else")

    def recount(self, statement: Statement, output: Any) -> Problem | None:
        if not isinstance(output, ProtectedCells):
            return Problem("it is not a protected table")
        problems = (outcome.problem for outcome in _outcomes(statement, output.tables))
        return next((problem for problem in problems if problem is not None and not problem.undecided), None)

    def reopen(self, statement: Statement, files: tuple[Path, ...]) -> ProtectedCells:
        frames = statement.basis.need(Tabulate).tables
        return ProtectedCells(tuple(map(_read, files[: len(frames)])), frames)


def _differing(tables: tuple[pa.Table, ...], files: tuple[Path, ...]) -> Problem | None:
    """Return that a file beside the tables is not what is written of them alone."""
    documents = documents_of(tables)
    for file in files:
        text = documents.get(file.name)
        if text is None or (file.is_file() and file.read_bytes() != (text.encode() if isinstance(text, str) else text)):
            return Problem("a crosstab is not what the table gives")
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
        second_moment = sum(p * v * v for p, v in zip(row(bend), values, strict=True))
        low, high = (bend, high) if second_moment < variance else (low, bend)
    return row(bend)[values.index(-1)]


def _read(file: Path) -> pa.Table:
    """Read labels as text, and the numbers of the last column as whole ones."""
    source = open_source(str(file))
    names = list(source.names)
    types = pa.schema([(name, pa.string()) for name in names[:-1]] + [(names[-1], pa.int64())])
    return pa.Table.from_batches([batch.cast(types) for batch in source.batches(names)], schema=types)


def _outcomes(statement: Statement, tables: tuple[pa.Table, ...]) -> Iterator[CheckOutcome]:
    made = statement.basis.need(Tabulate)
    required = [[*(axis.column for axis in frame.axes), made.number] for frame in made.tables]
    if [table.column_names for table in tables] != required:
        yield failed("columns in the file", "the columns are not those that the certificate says are released")
        return
    yield passed("columns in the file", "they are the released ones and the numbers, and no others")
    cells = _cells(statement, tables)
    yield CheckOutcome("cells in the file", cells, f"{made.cells:,} cells, each once and in order")
    if cells is not None:
        return
    seen = [_published(frame, table.column(made.number)) for frame, table in zip(made.tables, tables, strict=True)]
    numbers = next(filter(None, (_numbers(statement, *part) for part in zip(made.tables, seen, strict=True))), None)
    together = None
    try:
        together = Together.of(made.tables, seen)
    except Inconsistent:
        numbers = numbers or Problem("two tables contradict each other in a cell that they share")
    yield CheckOutcome("numbers in the file", numbers, "all are such as these steps can give")
    if statement.basis.find(SuppressCells) is not None and together is not None:
        text = "every empty cell could have numbers that lie far enough apart"
        yield CheckOutcome("empty cells in the file", _empty(statement, together), text)


def _published(frame: TableFrame, column: pa.ChunkedArray) -> tuple[Whole, Flags]:
    """Return the numbers of a table, 0 where it is empty, and which of its cells are seen."""
    values: Whole = column.fill_null(0).to_numpy().astype(np.int64)
    return values.reshape(frame.shape), column.is_valid().to_numpy().reshape(frame.shape)


def _cells(statement: Statement, tables: tuple[pa.Table, ...]) -> Problem | None:
    empty = 0
    for frame, table in zip(statement.basis.need(Tabulate).tables, tables, strict=True):
        if table.num_rows != frame.size:
            return Problem("there are not as many cells as the certificate lists")
        for axis, nodes in zip(frame.axes, np.indices(frame.shape), strict=True):
            labels = table.column(axis.column).cast(pa.string()).to_pylist()
            if labels != [axis.labels[node] for node in nodes.ravel().tolist()]:
                return Problem("the cells are not those that the certificate lists, each once and in order")
        empty += table.column(table.num_columns - 1).null_count
    listed = (statement.evidence.get("cells"), statement.evidence.get("empty cells"))
    if listed != (sum(table.num_rows for table in tables), empty):
        return Problem("there are other cells than the certificate's evidence says")
    return None


def _numbers(statement: Statement, frame: TableFrame, seen: tuple[Whole, Flags]) -> Problem | None:
    basis, (values, visible) = statement.basis, seen
    made, rounds, keyed = basis.need(Tabulate), basis.find(RoundCells), basis.find(PerturbCells)
    suppressed = basis.find(SuppressCells)
    if made.bounds is None and np.any(values < 0):
        return Problem("some number is negative")
    if suppressed is None and not visible.all():
        return Problem("some cell is empty, and these steps leave none out")
    if keyed is not None:
        small = (values > 0) & (values <= keyed.gap)
        return Problem("some count is one that is never published") if small.any() else None
    if frame.odd_sum(values, visible) is not None:
        return Problem("some total is not the sum of what it is the total of")
    if rounds is not None and np.any(values % rounds.base):
        return Problem(f"some number is not a multiple of {rounds.base}")
    ruled = suppressed or basis.find(AdjustCells)
    if ruled is not None and ruled.minimum is not None and made.counting and made.holding is None:
        small = visible & (values > 0) & (values < ruled.minimum)
        return Problem("a count is published that is smaller than the rule allows") if small.any() else None
    return None


def _empty(statement: Statement, together: Together) -> Problem | None:
    """Return a problem if an empty cell can be inferred too closely, or if there are too many to try; else None."""
    width, least = statement.basis.need(SuppressCells).width, _least(statement.basis)
    empty = together.empty
    if not len(empty):
        return None
    signed = statement.basis.need(Tabulate).bounds is not None
    for frame, (values, visible) in zip(together.frames, together.seen, strict=True) if not signed else ():
        low, high = narrowed(frame, values, visible, least)
        if np.any(low > high):
            return Problem("no numbers in the empty cells agree with all totals")
        if np.any((high - low)[~visible] < width):
            return Problem("an empty cell follows from the others, or nearly so")
    if together.unknowns > _AUDITED:
        text = f"adding up narrows none of {len(empty):,} empty cells, which are too many to try all they could be"
        return Problem(text, undecided=True)
    try:
        smallest, largest = spread(
            together.reader(least, signed=signed),
            together.cross.matrix[empty],
            lambda low, high: np.asarray(high - low >= width),
        )
    except Inconsistent:
        return Problem("no numbers in the empty cells agree with all totals")
    return Problem("an empty cell can be inferred too closely") if np.any(largest - smallest < width) else None


def _least(basis: ClaimBasis) -> int:
    """Return the least number that an empty cell can have: 1, but for a sum of zero to which too few contributed.

    Where zeros can be suppressed, it is 0.
    """
    return int(basis.need(SuppressCells).zeros == "published") and int(
        basis.need(Tabulate).counting or basis.need(SuppressCells).minimum is None
    )


_TABLES, _LINES, _COLUMNS = 6, 16, 8


class TablePicture(Picture):
    """A protected table in a report: its upper left corner, with what is left empty."""

    evidence: Mapping[str, str] | None = {"cells": "Cells, totals among them", "empty cells": "Cells left empty"}

    def description(self, statement: Statement) -> Description:
        basis, cells, empty = statement.basis, int(statement.evidence["cells"]), int(statement.evidence["empty cells"])
        made, rounds, keyed = basis.need(Tabulate), basis.find(RoundCells), basis.find(PerturbCells)
        what = ("Weighted sums of " if made.weight else "Sums of ") + made.value if made.value else "Counts"
        what = "Weighted counts" if made.weight and not made.value else what
        how = f"{counted(empty, 'cell')} left empty; every other number is exact." if basis.find(SuppressCells) else ""
        if rounds is not None:
            how = f"Every number is a multiple of {rounds.base}, and totals add up."
        if (moved := basis.find(AdjustCells)) is not None:
            how = f"Every count is at most {moved.shift} away from the true one, and totals add up."
        if keyed is not None:
            how = f"Every count that is not zero has noise of at most {keyed.largest}; totals do not add up."
        where = f"{counted(cells, 'cell')} over {', '.join(table.columns for table in made.tables)}"
        full = f"{what} in {where}, with all totals. {how} No row is published."
        title = "A table with totals" if len(made.tables) == 1 else f"{len(made.tables)} tables with totals"
        return Description(title, full, "the numbers of that person's cells")

    def draw(self, statement: Statement, output: Any) -> Markup | None:
        made = statement.basis.need(Tabulate)
        parts = zip(made.tables[:_TABLES], output.tables, strict=False)
        return Markup("\n").join(_corner(frame, cells.column(made.number), made.number) for frame, cells in parts)


def _corner(frame: TableFrame, column: pa.ChunkedArray, number: str) -> Markup:
    """Return the upper left corner of a table."""
    numbers = np.array(column.to_pylist(), object).reshape(frame.shape)
    corner = numbers[(slice(_LINES), slice(_COLUMNS), 0)[: numbers.ndim]]
    corner = corner[:, None] if corner.ndim == 1 else corner
    across = [number] if len(frame.axes) == 1 else [_label(label) for label in frame.axes[1].labels[:_COLUMNS]]
    lines = zip(frame.axes[0].labels, corner.tolist(), strict=False)
    rows = [[_label(label), *("—" if cell is None else f"{cell:,}" for cell in line)] for label, line in lines]
    part = "The table" if corner.size == numbers.size else "Part of the table"
    head = " × ".join(axis.column for axis in frame.axes[:2])
    return drawn_table(f"{part}; — is a cell left empty", [head, *across], rows)


def _label(label: str | None) -> str:
    return "missing" if label is None else label
