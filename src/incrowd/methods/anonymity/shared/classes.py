"""Classes: how a table whose rows lie in classes is counted again in its file, and what a report shows of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from markupsafe import Markup

from incrowd.core.cells import Cells
from incrowd.core.claims.claim import Claim
from incrowd.core.claims.privacy import (
    Anonymity,
    ApproximatePrivacy,
    Blending,
    Pseudonymity,
    PublishedTheorem,
    Smooth,
    ZeroKnowledge,
)
from incrowd.core.plan import Output
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.statement import Statement
from incrowd.core.steps.rows import Arrange, KeepRows, Order, Recode
from incrowd.core.steps.samples import SecretSample
from incrowd.core.steps.suppression import Suppress
from incrowd.core.words import counted
from incrowd.criteria import catalog
from incrowd.criteria.closeness import DISTANT
from incrowd.criteria.demand import ALL_ROWS, PEOPLE
from incrowd.criteria.recount import WrittenTable, classes_of
from incrowd.drawing.charts import class_sizes
from incrowd.drawing.markup import EMPTY, Description
from incrowd.drawing.picture import Picture
from incrowd.engines.local.engine import LocalEngine
from incrowd.engines.local.smallest_class import smallest_class
from incrowd.engines.readers.sources import open_source
from incrowd.methods.anonymity.shared.steps import Cut
from incrowd.methods.shared.microdata import WEIGHT, Anonymized, Microdata
from incrowd.verifier.check import Check, CheckOutcome, Problem, maybe, one
from incrowd.verifier.files import columns_of, values_of

_UNDECIDABLE = (
    (PEOPLE, "the population is not here to count it again"),
    (ALL_ROWS, "rows that were left out count too and are not here"),
    (DISTANT, "how far its values are apart is not told here"),
)
_OTHER_COLUMNS = Problem("the file's columns are not those that the certificate says are released")
_FINENESS = 2**16  # rows are measured in parts of 2⁻¹⁶, rounded down: a lower bound stays one
SAMPLED_CLAIMS = (ApproximatePrivacy, ZeroKnowledge, PublishedTheorem, Smooth, Blending, Anonymity, Pseudonymity)
"""What sampled suppression over declared columns can claim."""
_MOST_TRIED = 2**12  # sizes tried for a lower bound; fewer only lower it

Reader = Callable[[list[str]], Iterable[pa.RecordBatch]]
"""Reads some columns of an output."""
Table = TypeVar("Table", bound=Anonymized)


def recoding_problem(statement: Statement) -> Problem | None:
    """Return a problem if other columns are recoded than released."""
    same = statement.basis.need(Recode).names == statement.released
    return None if same else Problem("the recoded columns are not the released ones")


def columns_in(statement: Statement, file: Path) -> CheckOutcome:
    """Compare the columns of a file with the released ones; a weight must be 1/rate for everyone."""
    order = statement.basis.find(Order)
    weighted, problem = order is not None and order.weights, None
    if columns_of(file) != (*statement.released, *([WEIGHT] if weighted else [])):
        problem = _OTHER_COLUMNS
    elif weighted:
        weight = float(1 / statement.basis.need(SecretSample).rate)
        if any(float(value) != weight for value in values_of(file, WEIGHT)):
            problem = Problem("some weight is not 1/rate: a weight must tell nothing about anyone")
    return CheckOutcome("columns in the file", problem, "they are the released ones, and no others")


def smallest_class_in(statement: Statement, smallest: int | None) -> CheckOutcome:
    """Compare the rarest tuple of a file with k, and with the evidence."""
    k = statement.basis.need(Suppress).k
    size = "there are no rows" if smallest is None else f"the rarest tuple occurs {smallest} times"
    problem = None
    if smallest is not None and smallest < k:
        problem = Problem(f"{size}, k is {k}")
    elif statement.evidence.get("smallest class", smallest) != smallest:
        problem = Problem(f"{size}, and the certificate's evidence says otherwise")
    return CheckOutcome("crowds in the file", problem, f"{size}, k is {k}")


def reopen_rows(file: Path, names: Sequence[str]) -> Microdata:
    """Count the tuples of a published file; every column is text."""
    schema = Schema(tuple(map(Column, names)))
    return Microdata(LocalEngine().count(open_source(str(file)), Cells.of(schema, {})))


def reopen_table(statement: Statement, file: Path, kind: type[Table], quasi: Sequence[str] | None = None) -> Table:
    """Read a published table as text; the quasi-identifiers make a class, or all columns do."""
    names = list(statement.released)
    text = pa.schema([(name, pa.string()) for name in names])
    table = pa.Table.from_batches([batch.cast(text) for batch in open_source(str(file)).batches(names)], schema=text)
    columns = {}
    for name in names:
        encoded = table.column(name).combine_chunks().dictionary_encode()
        codes = encoded.indices.fill_null(len(encoded.dictionary)).to_numpy(zero_copy_only=False)
        columns[name] = encoded.dictionary, codes
    return kind.of(columns, np.ones(len(table), np.int64), quasi)


@dataclass(frozen=True, kw_only=True)
class MicrodataCheck(Check):
    """Counts a file of rows whose columns are all one tuple: the released columns, no rare tuple, equal weights."""

    def contradiction(self, statement: Statement) -> Problem | None:
        return recoding_problem(statement)

    def inspect(self, statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
        (file,) = files
        yield columns_in(statement, file)
        yield smallest_class_in(statement, smallest_class(file, statement.released))

    def recount(self, statement: Statement, output: Output) -> Problem | None:
        if not isinstance(output, Microdata):
            return Problem("it is not microdata")
        counts = output.counts.counts
        rare = len(counts) and int(counts.min()) < statement.basis.need(Suppress).k
        return Problem("some tuple occurs too rarely") if rare else None

    def reopen(self, statement: Statement, files: tuple[Path, ...]) -> Microdata:
        return reopen_rows(files[0], statement.released)


def least_width(k: int, rate: Fraction, fineness: int = _FINENESS) -> int:
    """Return how far one row surely moves the number of rows that sampled suppression keeps, in 1/fineness row.

    The n-th row of a cell adds rate·(P[B ≥ k] + k·P[B = k − 1]) expected rows, B of the n − 1 others being sampled.
    Near n = k/rate this is largest.  Of a long range around it, evenly spaced n are enough for a lower bound.

    >>> least_width(20, Fraction(1, 10)) / 2**16
    0.239...
    """
    beta = float(rate)
    around = range(max(0, math.floor((k - 1) / beta) - 2), math.ceil(k / beta) + 3)
    near = around[:: max(1, len(around) // _MOST_TRIED)]
    added = max(beta * (_at_least(k, n, beta) + k * (_at_least(k - 1, n, beta) - _at_least(k, n, beta))) for n in near)
    return math.floor(fineness * added * (1.0 - 1e-9))


def _at_least(k: int, n: int, rate: float) -> float:
    """Return the probability that at least k of n are sampled."""
    from scipy.stats import binom

    return float(binom.sf(k - 1, n, rate))


@dataclass(frozen=True, kw_only=True)
class ClassesCheck(Check):
    """Counts a file of rows that were cut into classes: the released columns, and every criterion of the cut."""

    def contradiction(self, statement: Statement) -> Problem | None:
        cut = statement.basis.need(Cut)
        if cut.columns != statement.of_role(Role.QUASI):
            return Problem("the columns that are cut are not the quasi-identifiers")
        if cut.sensitive != tuple(name for name in statement.of_role(Role.SENSITIVE) if name in cut.sensitive):
            return Problem("something is demanded of a column that is not sensitive")
        return recoding_problem(statement)

    def undecidable(self, claim: Claim) -> Problem | None:
        for conditions, reason in _UNDECIDABLE:
            if conditions[0] in claim.preconditions:
                return Problem(f"it agrees with the steps; {reason}", undecided=True)
        return None

    def inspect(self, statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
        (file,) = files
        yield columns_in(statement, file)
        columns = statement.basis.need(Cut).columns
        yield from _recounts(statement, open_source(str(file)).batches, partial(smallest_class, file, columns))

    def recount(self, statement: Statement, output: Output) -> Problem | None:
        if not isinstance(output, Anonymized):
            return Problem("it is not an anonymized table")
        problems = (outcome.problem for outcome in _recounts(statement, lambda _: output.batches()))
        return next((problem for problem in problems if problem is not None and not problem.undecided), None)

    def reopen(self, statement: Statement, files: tuple[Path, ...]) -> Anonymized:
        return reopen_table(statement, files[0], Anonymized, statement.basis.need(Cut).columns)


def check_of_cut(cut: type[Cut]) -> ClassesCheck:
    """Return the check of a method that cuts rows into classes by one class of step."""
    return ClassesCheck(
        order=(maybe(KeepRows), one(Recode), one(cut), one(Arrange)), claims=(*catalog.CLAIMS, Pseudonymity)
    )


def _recounts(
    statement: Statement, reader: Reader, smallest: Callable[[], int | None] | None = None
) -> Iterator[CheckOutcome]:
    """Compare an output with every criterion; each of its sensitive columns is counted once."""
    cut = statement.basis.need(Cut)
    columns = list(cut.columns)
    classes = cache(lambda column: classes_of(reader([*columns, column]), columns, column))
    sizes = cache(lambda: _sizes_of(reader(columns), columns))
    least = (lambda: min(sizes(), default=None)) if smallest is None else smallest
    table = WrittenTable(least, sizes, classes, cut.left_out, cut.places or {}, cut.ordered or {})
    for criterion in cut.criteria:
        recount = criterion.recount(table)
        problem = None if recount.holds else Problem(recount.text, undecided=recount.holds is None)
        yield CheckOutcome(f"{criterion.about} in the file", problem, recount.text)


def _sizes_of(batches: Iterable[pa.RecordBatch], columns: Sequence[str]) -> list[int]:
    """Return how many rows each class has."""
    classes = classes_of(batches, columns[:-1], columns[-1])
    return [rows for values in classes.values() for rows in values.values()]


class ClassesPicture(Picture):
    """How large the equivalence classes are, in words and as a chart."""

    evidence = {  # noqa: RUF012 - a constant that subclasses extend
        "rows": "Rows published",
        "classes": "Different combinations",
        "smallest class": "Rows of the rarest one",
    }
    where = "table has"

    def description(self, statement: Statement) -> Description:
        rows = int(statement.evidence["rows"])
        claim = next((claim for claim in statement.claims if isinstance(claim, Anonymity)), None)
        if rows == 0:
            return EMPTY
        if claim is None:
            return Description("See the claims", "No claim is made about the size of crowds.")
        several = " Rows of one person may be among them." if statement.basis.unit.max_rows > 1 else ""
        over = "" if set(claim.columns) == set(statement.released) else " in the quasi-identifiers"
        crowds = f"Each combination of values{over} that was published occurs at least {claim.k} times."
        size = f" The published {self.where} {counted(rows, 'row')}."
        return Description(f"Crowds of {claim.k} or more", f"{crowds}{several}{size}", f"at least {claim.k} equal rows")

    def draw(self, statement: Statement, output: Any) -> Markup | None:
        return class_sizes(output.sizes, over="in all quasi-identifiers")


class MicrodataPicture(ClassesPicture):
    """How large the classes over all columns are."""

    def draw(self, statement: Statement, output: Microdata) -> Markup | None:
        return class_sizes(output.counts.counts)
