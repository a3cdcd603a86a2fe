"""The files of a super-graph: sizes of at least k, and counts that such sizes can have."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from incrowd.core.claims.claim import Claim
from incrowd.core.plan import Output
from incrowd.core.statement import Statement
from incrowd.core.steps.step import Step
from incrowd.methods.graphs import contents
from incrowd.methods.graphs.claims import GroupedNodes
from incrowd.methods.graphs.outputs import COUNT, FROM, INSIDE, NODE, SIZE, TO, SuperGraph, TwoTables
from incrowd.methods.graphs.steps import Connect
from incrowd.methods.graphs.super_nodes.steps import GroupNodes
from incrowd.verifier.check import CheckOutcome, Problem, one

STEPS: tuple[type[Step], ...] = (Connect, GroupNodes)
CLAIMS: tuple[type[Claim], ...] = (GroupedNodes,)
ORDER = (one(Connect), one(GroupNodes))


def contradiction(statement: Statement) -> Problem | None:
    """Return that the labels are not the released columns, or None."""
    return contents.columns_problem(statement, statement.basis.need(GroupNodes).columns)


def looks(statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
    """Look at the super-nodes, their sizes and their counts."""
    return _looks(statement, reopen(statement, files))


def recount(statement: Statement, output: Output) -> Problem | None:
    """Hold a super-graph in memory against the statement."""
    return contents.recount_of(statement, output, SuperGraph, _looks)


def reopen(statement: Statement, files: tuple[Path, ...]) -> SuperGraph:  # noqa: ARG001 - all is in the files
    """Read what was published, as anyone can."""
    return SuperGraph(*map(contents.read, files))


def _looks(statement: Statement, output: TwoTables) -> Iterator[CheckOutcome]:
    return contents.graph_looks(statement, output, ([NODE, SIZE, INSIDE], [FROM, TO, COUNT]), _counts)


def _counts(statement: Statement, output: TwoTables) -> Problem | None:
    sizes, inside = output.nodes[SIZE].to_pylist(), output.nodes[INSIDE].to_pylist()
    if any(size < statement.basis.need(GroupNodes).k for size in sizes):
        return Problem("some super-node has fewer nodes than the certificate says")
    if any(not 0 <= edges <= size * (size - 1) // 2 for size, edges in zip(sizes, inside, strict=True)):
        return Problem("some super-node has more edges than pairs of nodes")
    between = zip(output.ends.tolist(), output.edges[COUNT].to_pylist(), strict=True)
    if any(not 0 < edges <= sizes[one] * sizes[other] for (one, other), edges in between):
        return Problem("between some super-nodes there are more edges than pairs of nodes")
    return None
