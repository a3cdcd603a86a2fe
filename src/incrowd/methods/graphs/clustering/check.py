"""The file of a clustering coefficient: two numbers, and what they come to."""

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
from incrowd.methods.graphs.clustering.steps import NoisyClustering, coefficient
from incrowd.methods.graphs.outputs import CLUSTERING, TRIANGLES, WEDGES, GraphNumbers
from incrowd.methods.graphs.steps import Connect
from incrowd.verifier.check import CheckOutcome, Problem, one

STEPS: tuple[type[Step], ...] = (Connect, NoisyClustering)
CLAIMS: tuple[type[Claim], ...] = (PurePrivacy,)
ORDER = (one(Connect), one(NoisyClustering))


def contradiction(statement: Statement) -> Problem | None:
    """Return that a node cannot be hidden so, or that the noise costs more than it says; or None."""
    if not statement.basis.unit.kind.of_edges:
        return Problem("triangles are hidden for edges, and the guarantee speaks of another unit")
    step = statement.basis.need(NoisyClustering)
    return contents.polynomial_problem(step.noise) or contents.columns_problem(statement, ())


def looks(statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:  # noqa: ARG001 - all is in the file
    """Look at the columns and the numbers."""
    (file,) = files
    return _looks(contents.read(file))


def recount(statement: Statement, output: Output) -> Problem | None:  # noqa: ARG001 - all is in the numbers
    """Hold numbers in memory against each other."""
    if not isinstance(output, GraphNumbers):
        return Problem("it is not a table of numbers of a graph")
    return contents.first_problem(_looks(output.table))


def reopen(statement: Statement, files: tuple[Path, ...]) -> GraphNumbers:  # noqa: ARG001 - all is in the file
    """Read what was published, as anyone can."""
    return GraphNumbers(contents.read(files[0]))


def _looks(table: pa.Table) -> Iterator[CheckOutcome]:
    rows = table.to_pylist()
    strange = table.column_names != [TRIANGLES, WEDGES, CLUSTERING] or len(rows) != 1 or None in rows[0].values()
    problem = Problem("the file does not hold two numbers and what they come to") if strange else None
    yield CheckOutcome("numbers in the file", problem, "they are triangles, pairs of edges, and the coefficient")
    if problem is None:
        wrong = rows[0][CLUSTERING] != coefficient(rows[0][TRIANGLES], rows[0][WEDGES])
        other = Problem("the coefficient is not that of the two numbers") if wrong else None
        yield CheckOutcome("coefficient in the file", other, "it is that of the two numbers")
