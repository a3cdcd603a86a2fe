"""The files of a graph with random changes: a simple graph; what changed its holder alone can tell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from incrowd.core.claims.claim import Claim
from incrowd.core.plan import Output
from incrowd.core.statement import Statement
from incrowd.core.steps.step import Step
from incrowd.methods.graphs import contents
from incrowd.methods.graphs.add_delete.steps import AddDelete
from incrowd.methods.graphs.claims import RandomEdges
from incrowd.methods.graphs.outputs import FROM, NODE, TO, PublishedGraph, TwoTables
from incrowd.methods.graphs.steps import Connect
from incrowd.verifier.check import CheckOutcome, Problem, one

STEPS: tuple[type[Step], ...] = (Connect, AddDelete)
CLAIMS: tuple[type[Claim], ...] = (RandomEdges,)
ORDER = (one(Connect), one(AddDelete))


def contradiction(statement: Statement) -> Problem | None:
    """Return that the labels are not the released columns, or None."""
    return contents.columns_problem(statement, statement.basis.need(AddDelete).columns)


def hidden(claim: Claim) -> Problem | None:  # noqa: ARG001 - there is one kind
    """Return that no published file shows what was changed."""
    return Problem("it agrees with the steps; what was changed only the holder knows", undecided=True)


def looks(statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
    """Look at the nodes and the edges."""
    return _looks(statement, reopen(statement, files))


def recount(statement: Statement, output: Output) -> Problem | None:
    """Hold a graph in memory against the statement."""
    return contents.recount_of(statement, output, PublishedGraph, _looks)


def reopen(statement: Statement, files: tuple[Path, ...]) -> PublishedGraph:  # noqa: ARG001 - all is in the files
    """Read what was published, as anyone can."""
    return PublishedGraph(*map(contents.read, files))


def _looks(statement: Statement, output: TwoTables) -> Iterator[CheckOutcome]:
    return contents.graph_looks(statement, output, ([NODE], [FROM, TO]), lambda _statement, _output: None)
