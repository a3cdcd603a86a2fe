"""The file of a degree distribution: each degree once, as many as a bound allows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from incrowd.core.claims.claim import Claim
from incrowd.core.claims.privacy import PurePrivacy
from incrowd.core.plan import Output
from incrowd.core.statement import Statement
from incrowd.core.steps.step import Step
from incrowd.core.unit import Kind
from incrowd.methods.graphs import contents
from incrowd.methods.graphs.degree_distribution.steps import NoisyDegrees
from incrowd.methods.graphs.outputs import GraphNumbers
from incrowd.methods.graphs.steps import Connect
from incrowd.verifier.check import CheckOutcome, Problem, one

STEPS: tuple[type[Step], ...] = (Connect, NoisyDegrees)
CLAIMS: tuple[type[Claim], ...] = (PurePrivacy,)
ORDER = (one(Connect), one(NoisyDegrees))


def contradiction(statement: Statement) -> Problem | None:
    """Return that nodes are protected without a bound, or edges with one, or that node columns are released."""
    bounded = statement.basis.need(NoisyDegrees).bound is not None
    if bounded != (statement.basis.unit.kind is Kind.NODE):
        return Problem("degrees are bounded where nodes are protected, and only there")
    return contents.columns_problem(statement, ())


def looks(statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
    """Look at the columns and the degrees."""
    (file,) = files
    return _looks(statement, contents.read(file))


def recount(statement: Statement, output: Output) -> Problem | None:
    """Hold a distribution in memory against the statement."""
    if not isinstance(output, GraphNumbers):
        return Problem("it is not a table of numbers of a graph")
    return contents.first_problem(_looks(statement, output.table))


def reopen(statement: Statement, files: tuple[Path, ...]) -> GraphNumbers:  # noqa: ARG001 - all is in the file
    """Read what was published, as anyone can."""
    return GraphNumbers(contents.read(files[0]))


def _looks(statement: Statement, table: pa.Table) -> Iterator[CheckOutcome]:
    strange = table.column_names != ["degree", "count"]
    columns = Problem("the columns are not degree and count") if strange else None
    yield CheckOutcome("columns in the file", columns, "they are degree and count")
    if not strange:
        yield CheckOutcome("degrees in the file", _degrees(statement, table), "each stands once, in order")


def _degrees(statement: Statement, table: pa.Table) -> Problem | None:
    bound = statement.basis.need(NoisyDegrees).bound
    if table["degree"].to_pylist() != list(range(table.num_rows)):
        return Problem("the degrees do not stand one after the other from 0 on")
    counts = table["count"].to_pylist()
    if bound is None:
        return Problem("some count is negative or missing") if any(c is None or c < 0 for c in counts) else None
    return Problem("there are not as many degrees as the bound allows") if table.num_rows != bound + 1 else None
