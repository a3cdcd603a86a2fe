"""The files of answers by pairs: a simple graph, and a coin that costs no more than its ε."""

from __future__ import annotations

from collections.abc import Iterator
from math import log
from pathlib import Path

from incrowd.core.claims.claim import Claim
from incrowd.core.claims.privacy import PurePrivacy
from incrowd.core.plan import Output
from incrowd.core.statement import Statement
from incrowd.core.steps.step import Step
from incrowd.methods.graphs import contents
from incrowd.methods.graphs.edge_response.output import RespondedGraph
from incrowd.methods.graphs.edge_response.steps import AnswerPairs
from incrowd.methods.graphs.outputs import FROM, NODE, TO, TwoTables
from incrowd.methods.graphs.steps import Connect
from incrowd.verifier.check import CheckOutcome, Problem, one

STEPS: tuple[type[Step], ...] = (Connect, AnswerPairs)
CLAIMS: tuple[type[Claim], ...] = (PurePrivacy,)
ORDER = (one(Connect), one(AnswerPairs))
_TOLERANCE = 1 + 1e-9  # logarithms here are floats


def contradiction(statement: Statement) -> Problem | None:
    """Return that the unit is no edge, that the coin costs more than ε, or that the labels are others; or None."""
    step = statement.basis.need(AnswerPairs)
    if not statement.basis.unit.kind.of_edges:
        return Problem("one answer hides an edge, and the guarantee speaks of another unit")
    if log(float((1 - step.flip) / step.flip)) > float(step.epsilon) * _TOLERANCE:
        return Problem("an answer that is flipped so rarely costs more than the epsilon of the steps")
    return contents.columns_problem(statement, step.columns)


def looks(statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
    """Look at the nodes and the edges."""
    return _looks(statement, reopen(statement, files))


def recount(statement: Statement, output: Output) -> Problem | None:
    """Hold a graph in memory against the statement."""
    return contents.recount_of(statement, output, RespondedGraph, _looks)


def reopen(statement: Statement, files: tuple[Path, ...]) -> RespondedGraph:
    """Read what was published, as anyone can."""
    nodes, edges = map(contents.read, files)
    return RespondedGraph(nodes, edges, None, statement.basis.need(AnswerPairs).flip)


def _looks(statement: Statement, output: TwoTables) -> Iterator[CheckOutcome]:
    return contents.graph_looks(statement, output, ([NODE], [FROM, TO]), lambda _statement, _output: None)
