"""Check of a coarser table: its file is compared with its steps, and recomputed from its parent's, row by row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
from markupsafe import Markup

from incrowd.core.cells import Cells
from incrowd.core.claims.privacy import (
    Anonymity,
    ApproximatePrivacy,
    Blending,
    Concentrated,
    Pseudonymity,
    PublishedTheorem,
    PurePrivacy,
    RobustTheorem,
    RobustZeroKnowledge,
    Smooth,
    ZeroKnowledge,
)
from incrowd.core.plan import Output
from incrowd.core.schema import Column, Schema
from incrowd.core.spreadsheet import unguarded
from incrowd.core.statement import Statement
from incrowd.core.steps.bins import PublishCounts
from incrowd.core.steps.rows import Order, Recode
from incrowd.core.steps.step import Step
from incrowd.drawing.charts import class_sizes
from incrowd.drawing.markup import Description
from incrowd.drawing.picture import Picture
from incrowd.engines.local.engine import LocalEngine
from incrowd.engines.local.smallest_class import smallest_class
from incrowd.engines.readers.sources import open_source
from incrowd.methods.anonymity.shared.classes import ClassesPicture, smallest_class_in
from incrowd.methods.histograms.shared.picture import EVIDENCE as COUNTED
from incrowd.methods.histograms.shared.picture import bin_bars, counts_described
from incrowd.methods.shared.microdata import WEIGHT, Microdata
from incrowd.methods.shared.outcome import COUNT, EXACT, Histogram
from incrowd.verifier.check import Certified, Check, CheckOutcome, Problem, one
from incrowd.verifier.files import file_of, tables_of
from incrowd.verifier.judge import check_steps
from incrowd.workflows.coarsen.steps import Coarsen, Parent
from incrowd.workflows.registry import check_of

PARENTS = ("safe", "scheme", "suppressed-histogram", "blended-histogram", "private-histogram")
"""The methods whose releases can be made coarser."""

Tuples = Counter[tuple[str | None, ...]]


@dataclass(frozen=True, kw_only=True)
class CoarserCheck(Check):
    """A coarser table: its file is compared with its steps, and recomputed from its parent's."""

    def contradiction(self, statement: Statement) -> Problem | None:
        return _contradiction(statement)

    def inspect(self, statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
        return _inspect(statement, files)

    def recount(self, statement: Statement, output: Output) -> Problem | None:
        return Problem("a coarser table is checked in its file, beside that of its parent")

    def reopen(self, statement: Statement, files: tuple[Path, ...]) -> Output:
        if is_counted(statement.steps):
            return Histogram(read(files[0]))
        schema = Schema(tuple(map(Column, statement.released)))
        return Microdata(LocalEngine().count(open_source(str(files[0])), Cells.of(schema, {})))

    @property
    def has_parent(self) -> bool:
        return True

    def compare_parent(self, release: Certified, parent: Certified) -> Problem | None:
        return compare_parent(release, parent)


def _contradiction(statement: Statement) -> Problem | None:
    """Return why columns are not among the parent's, or how the parent's steps contradict each other; or None."""
    parent, coarser = statement.steps
    if not isinstance(parent, Parent) or not isinstance(coarser, Coarsen):
        return Problem("these are not the steps of a coarser table")
    before = _columns_of(parent.steps)
    if coarser.names != statement.released or not set(coarser.names) <= set(before):
        return Problem("the columns are not among those that the parent released")
    if parent.method not in (*PARENTS, "coarser table"):
        return Problem("releases of this method cannot be made coarser")
    inherited = replace(statement, basis=replace(statement.basis, steps=parent.steps), released=before)
    return check_steps(inherited, check_of(parent.method))


def _inspect(statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
    """Check the file alone; comparing it with the parent's needs that file too (`compare_parent`)."""
    (file,) = files
    released, counted = statement.released, is_counted(statement.steps)
    table = read(file)
    extra = (COUNT,) if counted else (WEIGHT,) if statement.basis.need(Order).weights else ()
    right = tuple(table.column_names) == (*released, *extra)
    problem = None if right else Problem("the columns are not those that the certificate says are released")
    yield CheckOutcome("columns in the file", problem, "they are the released ones, and no others")
    if counted:
        same = statement.evidence.get("bins") == table.num_rows
        odd = None if same else Problem("there are not as many bins as the certificate's evidence says")
        yield CheckOutcome("bins in the file", odd, f"{table.num_rows:,} bins")
    elif right:
        yield smallest_class_in(statement, smallest_class(file, released))


def compare_parent(release: Certified, before: Certified) -> Problem | None:
    """Return a problem where a file is not the parent's file with the labels of the steps, or None."""
    certificate, parent, parent_files = release.certificate, before.certificate, before.files
    held, columns = certificate.steps
    if not isinstance(held, Parent) or not isinstance(columns, Coarsen):
        return Problem("these are not the steps of a coarser table")
    if (held.id, held.digest) != (parent.id, parent.digest()):
        return Problem("the certificate there is not the one that this table was made from")
    same = ("policy_hash", "dataset", "guarantee", "accounting", "ledger")
    if any(getattr(certificate, name) != getattr(parent, name) for name in same) or held.steps != parent.steps:
        return Problem("guarantee, accounting, dataset, policy or steps are not the parent's")
    if [file_of(file) for file in parent_files] != list(tables_of(parent)):
        return Problem("the parent's file is not the one that its certificate names")
    (file,), (parent_file,), counted = release.files, parent_files, is_counted(certificate.steps)
    maps = {column.column: dict(column.labels or ()) for column in columns.columns}
    names = list(maps)
    earlier, after = _tuples(read(parent_file), names, counted), _tuples(read(file), names, counted)
    expected: Tuples = Counter()
    try:
        for labels, times in earlier.items():
            rise = zip(names, labels, strict=True)
            expected[tuple(maps[name][label] if maps[name] else label for name, label in rise)] += times
    except KeyError:
        return Problem("the certificate does not say what some label of the parent's file becomes")
    if expected.keys() != after.keys() or any(expected[key] != after[key] for key in expected):
        return Problem("it is not what the parent's file gives")
    return None


def is_counted(steps: tuple[Step, ...]) -> bool:
    """Whether the release that all of it came from was one of counts."""
    return any(isinstance(step, PublishCounts) for step in root(steps)[-1:])


def root(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Return the steps of the release that was charged."""
    return steps[0].charged.steps if steps and isinstance(steps[0], Parent) else steps


def _columns_of(steps: tuple[Step, ...]) -> tuple[str, ...]:
    """Return the columns that a release has."""
    recoding = next((step for step in reversed(steps) if isinstance(step, Coarsen | Recode)), None)
    return () if recoding is None else recoding.names


def read(file: Path) -> pa.Table:
    """Read a published table as anyone can: labels as text, counts as whole numbers."""
    if file.suffix == ".parquet":
        from pyarrow import parquet as pq

        with pq.ParquetFile(file) as opened:
            return opened.read()
    from pyarrow import csv

    parse = csv.ParseOptions(delimiter="\t" if file.suffix == ".tsv" else ",", newlines_in_values=True)
    with csv.open_csv(file, parse_options=parse) as reader:
        names = reader.schema.names
    numbers = {COUNT: pa.int64(), EXACT: pa.bool_()}
    types = {name: numbers.get(name, pa.dictionary(pa.int32(), pa.string())) for name in names}
    convert = csv.ConvertOptions(
        column_types=types,
        strings_can_be_null=True,
        null_values=[""],
        quoted_strings_can_be_null=len(names) == 1,  # a line without a single character would be no row
    )
    return unguarded(csv.read_csv(file, parse_options=parse, convert_options=convert), file)


def text_of(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return labels as text, whatever they were stored as."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    decoded = whole.dictionary_decode() if pa.types.is_dictionary(whole.type) else whole
    return decoded.cast(pa.string())


def _tuples(table: pa.Table, names: list[str], counted: bool) -> Tuples:
    columns = [text_of(table[name]).to_pylist() for name in names]
    times = table[COUNT].to_pylist() if counted else [1] * table.num_rows
    counts: Tuples = Counter()
    for labels, count in zip(zip(*columns, strict=True), times, strict=True):
        counts[labels] += count
    return counts


_CLASSES = ClassesPicture()
_SUMS = "Every count is a sum of released ones, which its parent's steps describe."


class CoarserPicture(Picture):
    """The equivalence classes of a coarser table, or its counts, which are sums of released ones."""

    evidence: Mapping[str, str] | None = {**_CLASSES.evidence, **COUNTED}

    def description(self, statement: Statement) -> Description:
        return counts_described(statement, _SUMS) if is_counted(statement.steps) else _CLASSES.description(statement)

    def draw(self, statement: Statement, output: Microdata | Histogram) -> Markup | None:
        if isinstance(output, Histogram):
            return bin_bars(output, ["a sum"] * len(output), _SUMS)
        return class_sizes(output.counts.counts)


CHECK = CoarserCheck(
    order=(one(Parent), one(Coarsen)),
    claims=(
        PurePrivacy,
        ApproximatePrivacy,
        Concentrated,
        ZeroKnowledge,
        PublishedTheorem,
        Smooth,
        RobustZeroKnowledge,
        RobustTheorem,
        Blending,
        Anonymity,
        Pseudonymity,
    ),
)
PICTURE = CoarserPicture()
