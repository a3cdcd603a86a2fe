"""The file of a count: one number, and noise that costs no more than its ε."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from incrowd.core.claims.claim import Claim
from incrowd.core.claims.privacy import PurePrivacy
from incrowd.core.plan import Output
from incrowd.core.statement import Statement
from incrowd.core.steps.step import Step
from incrowd.methods.graphs import contents
from incrowd.methods.graphs.outputs import GraphNumbers
from incrowd.methods.graphs.steps import Connect
from incrowd.methods.graphs.subgraph_count.steps import TRIANGLES, NoisyCount, NoisyTriangles
from incrowd.verifier.check import CheckOutcome, Problem, one

STEPS: tuple[type[Step], ...] = (Connect, NoisyCount, NoisyTriangles)
CLAIMS: tuple[type[Claim], ...] = (PurePrivacy,)
ORDER = (one(Connect), one(NoisyCount, NoisyTriangles))


def contradiction(statement: Statement) -> Problem | None:
    """Return that a node cannot be hidden so, or that polynomial noise costs more than it says; or None."""
    smooth = statement.basis.find(NoisyTriangles)
    if smooth is None:
        statement.basis.need(NoisyCount).reach(statement.basis.unit.kind)
        return contents.columns_problem(statement, ())
    if not statement.basis.unit.kind.of_edges:
        return Problem("triangles are hidden for edges, and the guarantee speaks of another unit")
    return contents.polynomial_problem(smooth.noise) or contents.columns_problem(statement, ())


def looks(statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
    """Look at the columns and the number."""
    (file,) = files
    return _looks(statement, contents.read(file))


def recount(statement: Statement, output: Output) -> Problem | None:
    """Hold a number in memory against the statement."""
    if not isinstance(output, GraphNumbers):
        return Problem("it is not a number of a graph")
    return contents.first_problem(_looks(statement, output.table))


def reopen(statement: Statement, files: tuple[Path, ...]) -> GraphNumbers:  # noqa: ARG001 - all is in the file
    """Read what was published, as anyone can."""
    return GraphNumbers(contents.read(files[0]))


def _looks(statement: Statement, table: pa.Table) -> Iterator[CheckOutcome]:
    count = statement.basis.find(NoisyCount)
    what = TRIANGLES if count is None else count.count
    strange = table.column_names != ["what", "number"] or table["what"].to_pylist() != [what]
    problem = Problem("the file does not hold this one number") if strange or table["number"].null_count else None
    yield CheckOutcome("number in the file", problem, "it is one, of what the steps count")
