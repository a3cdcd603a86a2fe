"""The file of safe microdata, counted again: the released columns, no rare tuple, the same weight for everyone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from incrowd.core.cells import Cells
from incrowd.core.claims.claim import Claim
from incrowd.core.claims.privacy import (
    Anonymity,
    ApproximatePrivacy,
    Blending,
    Pseudonymity,
    PublishedTheorem,
    RobustTheorem,
    RobustZeroKnowledge,
    Smooth,
    ZeroKnowledge,
)
from incrowd.core.plan import Output
from incrowd.core.schema import Column, Schema
from incrowd.core.statement import Statement
from incrowd.core.steps.choices import LevelsByLook, SuppressAfterLook
from incrowd.core.steps.rows import KeepRows, Order, Recode
from incrowd.core.steps.samples import DrawnBefore, DrawnHere, EveryRow, SecretSample
from incrowd.core.steps.step import Step
from incrowd.core.steps.suppression import Suppress
from incrowd.engines.local.engine import LocalEngine
from incrowd.engines.local.smallest_class import smallest_class
from incrowd.engines.readers.sources import open_source
from incrowd.methods.outcomes.microdata import WEIGHT, Microdata
from incrowd.verifier.check import CheckOutcome, Problem, maybe, one
from incrowd.verifier.files import columns_of, values_of

SAMPLES = (EveryRow, SecretSample, DrawnBefore, DrawnHere)
STEPS: tuple[type[Step], ...] = (LevelsByLook, KeepRows, *SAMPLES, Recode, Suppress, SuppressAfterLook, Order)
CLAIMS: tuple[type[Claim], ...] = (
    ApproximatePrivacy,
    ZeroKnowledge,
    PublishedTheorem,
    Smooth,
    RobustZeroKnowledge,
    RobustTheorem,
    Blending,
    Anonymity,
    Pseudonymity,
)
ORDER = (
    maybe(LevelsByLook),
    maybe(KeepRows),
    one(*SAMPLES),
    one(Recode),
    one(Suppress, SuppressAfterLook),
    one(Order),
)


def contradiction(statement: Statement) -> Problem | None:
    """Return that other columns are recoded than released, or that crowds hang on a look that is not told; or None."""
    basis = statement.basis
    looked, after = basis.find(LevelsByLook), basis.find(SuppressAfterLook)
    if (looked is None) != (after is None) or (looked and basis.find(SecretSample) is None):
        return Problem("levels by a private look, and suppression behind it on a secret sample, go together")
    same = basis.need(Recode).names == statement.released
    return None if same else Problem("the recoded columns are not the released ones")


def looks(statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
    """Count the file: its columns, its rarest tuple, its weights."""
    (file,) = files
    yield CheckOutcome("columns in the file", _columns(statement, file), "they are the released ones, and no others")
    yield crowds(statement, smallest_class(file, statement.released))


def crowds(statement: Statement, smallest: int | None) -> CheckOutcome:
    """Hold the rarest tuple of a file against k, and against the evidence."""
    k = statement.basis.need(Suppress).k
    size = "there are no rows" if smallest is None else f"the rarest tuple occurs {smallest} times"
    problem = None
    if smallest is not None and smallest < k:
        problem = Problem(f"{size}, k is {k}")
    elif statement.evidence.get("smallest class", smallest) != smallest:
        problem = Problem(f"{size}, and the certificate's evidence says otherwise")
    return CheckOutcome("crowds in the file", problem, f"{size}, k is {k}")


def recount(statement: Statement, output: Output) -> Problem | None:
    """Return that some tuple of an output in memory is rare, or None."""
    if not isinstance(output, Microdata):
        return Problem("it is not microdata")
    counts = output.counts.counts
    rare = len(counts) and int(counts.min()) < statement.basis.need(Suppress).k
    return Problem("some tuple occurs too rarely") if rare else None


def reopen(statement: Statement, files: tuple[Path, ...]) -> Microdata:
    """Count the published file, as anyone can; columns are text."""
    schema = Schema(tuple(map(Column, statement.released)))
    return Microdata(LocalEngine().count(open_source(str(files[0])), Cells.of(schema, {})))


def _columns(statement: Statement, file: Path) -> Problem | None:
    """Return that a file has other columns than the released ones, or weights that are not 1/rate, or None."""
    weighted = statement.basis.need(Order).weights
    if columns_of(file) != (*statement.released, *([WEIGHT] if weighted else [])):
        return Problem("the file's columns are not those that the certificate says are released")
    if weighted:
        weight = float(1 / statement.basis.need(SecretSample).rate)
        if any(float(each) != weight for each in values_of(file, WEIGHT)):
            return Problem("some weight is not 1/rate: a weight must tell nothing about anyone")
    return None
