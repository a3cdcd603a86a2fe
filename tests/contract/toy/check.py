"""Its file, looked at again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from incrowd.core.claims.privacy import PurePrivacy
from incrowd.core.statement import Statement
from incrowd.core.steps.rows import KeepRows
from incrowd.core.steps.samples import EveryRow
from incrowd.verifier.check import CheckOutcome, Problem, maybe, one
from incrowd.verifier.files import columns_of, values_of
from tests.contract.toy.steps import AddToTotal, Total

STEPS = (KeepRows, EveryRow, AddToTotal)
CLAIMS = (PurePrivacy,)
ORDER = (maybe(KeepRows), one(EveryRow), one(AddToTotal))


def contradiction(statement: Statement) -> Problem | None:
    """Return that a column of the input is said to be released."""
    return Problem("no column is released") if statement.released else None


def looks(statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
    """Look for one number."""
    (file,) = files
    right = columns_of(file) == ("total",) and len(list(values_of(file, "total"))) == 1
    yield CheckOutcome("number in the file", None if right else Problem("there is not one total"), "there is one total")


def recount(statement: Statement, output: Total) -> Problem | None:
    """Look for one number in memory."""
    return None if len(output) == 1 else Problem("there is not one total")


def reopen(statement: Statement, files: tuple[Path, ...]) -> Total:
    """Read the number."""
    return Total(pa.table({"total": pa.array([int(each) for each in values_of(files[0], "total")], pa.int64())}))
