"""The file of a table in classes, counted again: the released columns, and every criterion that the cut demands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from incrowd.core.claims.claim import Claim
from incrowd.core.claims.privacy import Pseudonymity
from incrowd.core.plan import Output
from incrowd.core.schema import Role
from incrowd.core.statement import Statement
from incrowd.core.steps.rows import Recode
from incrowd.criteria import catalog
from incrowd.criteria.closeness import DISTANT
from incrowd.criteria.demand import ALL_ROWS, PEOPLE
from incrowd.criteria.recount import Recount, WrittenTable, classes_of
from incrowd.engines.local.smallest_class import smallest_class
from incrowd.engines.readers.sources import open_source
from incrowd.methods.anonymity.syntactic.steps import Cut
from incrowd.methods.outcomes.anonymized import Anonymized
from incrowd.verifier.check import CheckOutcome, Problem
from incrowd.verifier.files import columns_of

_HIDDEN = (
    (PEOPLE, "the population is not here to count it again"),
    (ALL_ROWS, "rows that were left out count too and are not here"),
    (DISTANT, "how far its values are apart is not told here"),
)
CLAIMS: tuple[type[Claim], ...] = (*catalog.CLAIMS, Pseudonymity)

Reader = Callable[[list[str]], Iterable[pa.RecordBatch]]
"""Reads some columns of an output."""


def contradiction(statement: Statement) -> Problem | None:
    """Return that other columns are recoded than released, or cut than people can be looked up by, or None."""
    cut = statement.basis.need(Cut)
    if cut.columns != statement.of_role(Role.QUASI):
        return Problem("the columns that are cut are not the quasi-identifiers")
    if cut.sensitive != tuple(name for name in statement.of_role(Role.SENSITIVE) if name in cut.sensitive):
        return Problem("something is demanded of a column that is not sensitive")
    return unlike_released(statement)


def unlike_released(statement: Statement) -> Problem | None:
    """Return that other columns are recoded than released, or None."""
    same = statement.basis.need(Recode).names == statement.released
    return None if same else Problem("the recoded columns are not the released ones")


def hidden(claim: Claim) -> Problem | None:
    """Return that a claim was true when it was made and cannot be counted again, or None."""
    for conditions, words in _HIDDEN:
        if conditions[0] in claim.preconditions:
            return Problem(f"it agrees with the steps; {words}", undecided=True)
    return None


def looks(statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
    """Count the file: its columns, and every criterion."""
    (file,) = files
    yield columns_in(statement, file)
    columns = statement.basis.need(Cut).columns
    yield from recounts(statement, open_source(str(file)).batches, partial(smallest_class, file, columns))


def columns_in(statement: Statement, file: Path) -> CheckOutcome:
    """Hold the columns of a file against those that are released."""
    same = columns_of(file) == statement.released
    problem = None if same else Problem("the file's columns are not those that the certificate says are released")
    return CheckOutcome("columns in the file", problem, "they are the released ones, and no others")


def recounts(
    statement: Statement, reader: Reader, smallest: Callable[[], int | None] | None = None
) -> Iterator[CheckOutcome]:
    """Hold every criterion against an output, each sensitive column of which is counted once."""
    cut = statement.basis.need(Cut)
    columns = list(cut.columns)
    classes = cache(lambda column: classes_of(reader([*columns, column]), columns, column))
    sizes = cache(lambda: sizes_of(reader(columns), columns))
    least = (lambda: min(sizes(), default=None)) if smallest is None else smallest
    table = WrittenTable(least, sizes, classes, cut.left_out, cut.places or {}, cut.ordered or {})
    for criterion in cut.criteria:
        found = criterion.recount(table)
        yield CheckOutcome(f"{criterion.about} in the file", problem_of(found), found.text)


def sizes_of(batches: Iterable[pa.RecordBatch], columns: Sequence[str]) -> list[int]:
    """Return how many rows each class has."""
    counted = classes_of(batches, columns[:-1], columns[-1])
    return [times for values in counted.values() for times in values.values()]


def problem_of(found: Recount) -> Problem | None:
    """Return what is wrong with what was counted, or left open by it, or None."""
    return None if found.holds else Problem(found.text, undecided=found.holds is None)


def recount(statement: Statement, output: Output) -> Problem | None:
    """Return which criterion an output in memory breaks, or None."""
    if not isinstance(output, Anonymized):
        return Problem("it is not an anonymized table")
    found = (look.problem for look in recounts(statement, lambda _: output.batches()))
    return next((problem for problem in found if problem is not None and not problem.undecided), None)


def reopen(statement: Statement, files: tuple[Path, ...]) -> Anonymized:
    """Count the published file, as anyone can; every column is text."""
    return reopen_table(statement, files[0], statement.basis.need(Cut).columns)


def reopen_table(statement: Statement, file: Path, quasi: Sequence[str]) -> Anonymized:
    """Read a published table as text, with the columns that make a class."""
    names = list(statement.released)
    text = pa.schema([(name, pa.string()) for name in names])
    table = pa.Table.from_batches([batch.cast(text) for batch in open_source(str(file)).batches(names)], schema=text)
    columns, codes = {}, []
    for name in names:
        encoded = table.column(name).combine_chunks().dictionary_encode()
        columns[name] = encoded.dictionary
        codes.append(encoded.indices.fill_null(len(encoded.dictionary)).to_numpy(zero_copy_only=False))
    return Anonymized.of(columns, codes, np.ones(len(table), np.int64), quasi)
