"""The files of a graph drawn from degrees: a simple graph without labels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from incrowd.core.claims.claim import Claim
from incrowd.core.claims.privacy import PurePrivacy
from incrowd.core.plan import Output
from incrowd.core.statement import Statement
from incrowd.core.steps.step import Step
from incrowd.methods.graphs import contents
from incrowd.methods.graphs.degree_sequence.steps import DrawFromDegrees
from incrowd.methods.graphs.outputs import FROM, NODE, TO, SyntheticGraph, TwoTables
from incrowd.methods.graphs.steps import Connect
from incrowd.verifier.check import CheckOutcome, Problem, one

STEPS: tuple[type[Step], ...] = (Connect, DrawFromDegrees)
CLAIMS: tuple[type[Claim], ...] = (PurePrivacy,)
ORDER = (one(Connect), one(DrawFromDegrees))


def contradiction(statement: Statement) -> Problem | None:
    """Return that the unit is no edge, or that columns of nodes are released; or None."""
    if not statement.basis.unit.kind.of_edges:
        return Problem("noisy degrees hide an edge, and the guarantee speaks of another unit")
    return contents.columns_problem(statement, ())


def looks(statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
    """Look at the nodes and the edges."""
    return _looks(statement, reopen(statement, files))


def recount(statement: Statement, output: Output) -> Problem | None:
    """Hold a graph in memory against the statement."""
    return contents.recount_of(statement, output, SyntheticGraph, _looks)


def reopen(statement: Statement, files: tuple[Path, ...]) -> SyntheticGraph:  # noqa: ARG001 - all is in the files
    """Read what was published, as anyone can."""
    return SyntheticGraph(*map(contents.read, files))


def _looks(statement: Statement, output: TwoTables) -> Iterator[CheckOutcome]:
    return contents.graph_looks(statement, output, ([NODE], [FROM, TO]), lambda _statement, _output: None)
