"""The file of a masked table, looked at again: what a file alone can show of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from incrowd.core.claims.claim import Claim
from incrowd.core.claims.crowds import Anonymity, Pseudonymity
from incrowd.core.claims.privacy import PurePrivacy
from incrowd.core.plan import Output
from incrowd.core.schema import Role
from incrowd.core.statement import Statement
from incrowd.core.steps.rows import Arrange, KeepRows, Recode
from incrowd.core.steps.step import Step
from incrowd.criteria.individual_risk import individual_risk
from incrowd.engines.readers.sources import open_source
from incrowd.methods.perturbation.frame import RowFrame
from incrowd.methods.perturbation.local_suppression.steps import IndividualRisk, SuppressAtRisk
from incrowd.methods.perturbation.microaggregation.steps import AggregateRows
from incrowd.methods.perturbation.output import MaskedRows, rows_of
from incrowd.methods.perturbation.pram.steps import Randomize
from incrowd.methods.perturbation.steps import Masked, Masking, Preservation, maskings
from incrowd.verifier.check import CheckOutcome, Place, Problem, maybe, one, some
from incrowd.verifier.files import columns_of

CLAIMS: tuple[type[Claim], ...] = (PurePrivacy, Anonymity, IndividualRisk, Preservation, Masked, Pseudonymity)
STATISTICS = True
"""Whether files of Stata, SPSS and SAS are read here."""
_ROUNDING = 1e-9
_HOLDER = "it follows from the steps; only the holder of the original rows can see it, with `incrowd assess`"


def steps_with(*masking: type[Masking]) -> tuple[tuple[type[Step], ...], tuple[Place, ...]]:
    """Return the steps of a masked table and their order, with some masks among them."""
    return (KeepRows, Recode, *masking, Arrange), (maybe(KeepRows), one(Recode), one(*masking), one(Arrange))


def chain_of(*masking: type[Masking]) -> tuple[tuple[type[Step], ...], tuple[Place, ...]]:
    """Return the steps of a chain of masks and their order."""
    return (KeepRows, Recode, *masking, Arrange), (maybe(KeepRows), one(Recode), some(*masking), one(Arrange))


def contradiction(statement: Statement) -> Problem | None:
    """Return that other columns are read than released, or changed than read, or None."""
    released, recode = statement.released, statement.basis.need(Recode)
    if recode.names != released:
        return Problem("the columns that are read are not the released ones")
    for step in maskings(statement.steps):
        if not set(step.changes) <= set(released):
            return Problem("a column is changed that is not released")
        if not set(step.reads) <= set(released) or step.household in released:
            return Problem("a step works by columns that are not released, or by households that are")
        if isinstance(step, SuppressAtRisk) and step.quasi != statement.of_role(Role.QUASI):
            return Problem("the columns by which rows look alike are not the quasi-identifiers")
        if isinstance(step, Randomize) and not _whole(step, recode):
            return Problem("which columns change at random, and by which rules rows are read, is told otherwise")
        if isinstance(step, AggregateRows) and step.quasi not in (None, statement.of_role(Role.QUASI)):
            return Problem("the columns that are grouped together are not the quasi-identifiers")
    return None


def _whole(step: Randomize, recode: Recode) -> bool:
    """Whether what a random change says of the columns beside it is what they say themselves."""
    others = tuple(name for name in recode.names if name not in step.changes)
    drops = any("drop" in (column.missing, column.outside) for column in recode.columns)
    return (step.others, step.drafted, step.drops) == (others, bool(recode.drafted), drops)


def hidden(claim: Claim) -> Problem | None:
    """Return that what is kept of the original cannot be seen without it, or None."""
    return Problem(_HOLDER, undecided=True) if isinstance(claim, Preservation) else None


def looks(statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
    """Read the file: its columns, and whether enough rows look alike where that is claimed."""
    (file,) = files
    same = columns_of(file) == statement.released
    problem = None if same else Problem("the file's columns are not those that the certificate says are released")
    yield CheckOutcome("columns in the file", problem, "they are the released ones, and no others")
    if same:
        yield from _classes(statement, reopen(statement, files))


def recount(statement: Statement, output: Output) -> Problem | None:
    """Return what an output in memory breaks, or None."""
    if not isinstance(output, MaskedRows):
        return Problem("it is not a table of masked rows")
    return next((look.problem for look in _classes(statement, output) if look.problem is not None), None)


def reopen(statement: Statement, files: tuple[Path, ...]) -> MaskedRows:
    """Read the published file, as anyone can; every column is text."""
    names = list(statement.released)
    text = pa.schema([(name, pa.string()) for name in names])
    batches = [batch.cast(text) for batch in open_source(str(files[0])).batches(names)]
    return rows_of(pa.Table.from_batches(batches, schema=text), statement.of_role(Role.QUASI))


def _classes(statement: Statement, rows: MaskedRows) -> Iterator[CheckOutcome]:
    for claim in statement.claims:
        if isinstance(claim, Anonymity) and len(rows):
            least = int(MaskedRows(rows.table, claim.columns).sizes.min())
            text = f"the rarest combination occurs {least} times, k is {claim.k}"
            yield CheckOutcome(f"{claim.kind} in the file", Problem(text) if least < claim.k else None, text)
        if isinstance(claim, IndividualRisk) and len(rows):
            highest = _highest_risk(rows, claim)
            text = f"the highest risk is {highest:.6g}, the threshold is {float(claim.threshold):g}"
            above = highest > float(claim.threshold) * (1 + _ROUNDING)
            yield CheckOutcome(f"{claim.kind} in the file", Problem(text) if above else None, text)


def _highest_risk(rows: MaskedRows, claim: IndividualRisk) -> float:
    """Return the largest chance with which the model links a published row, from the published weights."""
    frame = RowFrame(rows.table)
    group = frame.groups(claim.columns)
    weights = np.bincount(group, frame.numbers(claim.weight)).astype(np.float64)
    return float(individual_risk(np.bincount(group), weights).max())
