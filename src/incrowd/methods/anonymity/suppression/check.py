"""The file of a table with missing cells, counted again: rows that look alike, or rows that match."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from incrowd.core.claims.claim import Claim
from incrowd.core.claims.crowds import Anonymity, Pseudonymity
from incrowd.core.plan import Output
from incrowd.core.schema import Role
from incrowd.core.steps.rows import KeepRows, Recode
from incrowd.core.steps.step import Step
from incrowd.engines.readers.sources import open_source
from incrowd.methods.anonymity.suppression.output import Blanked
from incrowd.methods.anonymity.suppression.recount import fewest_alike, fewest_matching, tuples_of
from incrowd.methods.anonymity.suppression.steps import (
    ArrangeBlanks,
    LeaveOutCells,
    SubsetsClaim,
    WildcardsClaim,
    WildSubsetsClaim,
)
from incrowd.methods.anonymity.syntactic.check import columns_in, reopened, unlike_released
from incrowd.verify.statement import Look, Problem, Statement, maybe, one

STEPS: tuple[type[Step], ...] = (KeepRows, Recode, LeaveOutCells, ArrangeBlanks)
CLAIMS: tuple[type[Claim], ...] = (Anonymity, WildcardsClaim, SubsetsClaim, WildSubsetsClaim, Pseudonymity)
ORDER = (maybe(KeepRows), one(Recode), one(LeaveOutCells), one(ArrangeBlanks))


def contradiction(statement: Statement) -> Problem | None:
    """Return that cells of other columns are left out than people can be looked up by, or None."""
    if statement.grounds.need(LeaveOutCells).columns != statement.of_role(Role.QUASI):
        return Problem("the columns whose cells are left out are not the quasi-identifiers")
    return unlike_released(statement)


def looks(statement: Statement, files: tuple[Path, ...]) -> Iterator[Look]:
    """Count the file: its columns, and how many rows agree."""
    (file,) = files
    columns = columns_in(statement, file)
    yield columns
    if columns.problem is None:
        quasi = list(statement.grounds.need(LeaveOutCells).columns)
        yield from agreements(statement, tuples_of(open_source(str(file)).batches(quasi), quasi))


def agreements(statement: Statement, tuples: pa.Table) -> Iterator[Look]:
    """Count every claim about the columns again."""
    for claim in statement.claims:
        if not isinstance(claim, Anonymity | WildcardsClaim | SubsetsClaim):
            continue
        size = claim.size if isinstance(claim, SubsetsClaim) else None
        if isinstance(claim, WildcardsClaim | WildSubsetsClaim):
            found, words = fewest_matching(tuples, claim.k, size), "{} rows or more match each row, k is {}"
        else:
            found, words = fewest_alike(tuples, size), "the rarest combination occurs {} times, k is {}"
        text = "there are no rows" if found is None else words.format(found, claim.k)
        about = "" if size is None else f" of any {size}"
        problem = Problem(text) if found is not None and found < claim.k else None
        yield Look(f"{claim.kind}{about} in the file", problem, text)


def recount(statement: Statement, output: Output) -> Problem | None:
    """Return in which columns too few rows of an output in memory agree, or None."""
    if not isinstance(output, Blanked):
        return Problem("it is not a table with missing cells")
    tuples = tuples_of(output.batches(), statement.grounds.need(LeaveOutCells).columns)
    return next((look.problem for look in agreements(statement, tuples) if look.problem is not None), None)


def reopen(statement: Statement, files: tuple[Path, ...]) -> Blanked:
    """Count the published file, as anyone can; every column is text."""
    read = reopened(statement, files[0], statement.grounds.need(LeaveOutCells).columns)
    return Blanked(read.names, read.values, read.keys, read.counts, read.quasi)
