"""The files of a graph drawn from blocks: a simple graph with no more blocks than declared."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from incrowd.core.claims.claim import Claim
from incrowd.core.claims.privacy import PurePrivacy
from incrowd.core.plan import Output
from incrowd.core.statement import Statement
from incrowd.core.steps.step import Step
from incrowd.methods.graphs import contents
from incrowd.methods.graphs.block_model.steps import DrawFromBlocks
from incrowd.methods.graphs.outputs import FROM, NODE, TO, PublishedGraph, TwoTables
from incrowd.methods.graphs.steps import Connect
from incrowd.verifier.check import CheckOutcome, Problem, one

STEPS: tuple[type[Step], ...] = (Connect, DrawFromBlocks)
CLAIMS: tuple[type[Claim], ...] = (PurePrivacy,)
ORDER = (one(Connect), one(DrawFromBlocks))


def contradiction(statement: Statement) -> Problem | None:
    """Return that the unit is no edge, or that other columns than the block are released; or None."""
    if not statement.basis.unit.kind.of_edges:
        return Problem("noisy counts of blocks hide an edge, and the guarantee speaks of another unit")
    return contents.columns_problem(statement, (statement.basis.need(DrawFromBlocks).column,))


def looks(statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
    """Look at the nodes, the edges and the blocks."""
    return _looks(statement, reopen(statement, files))


def recount(statement: Statement, output: Output) -> Problem | None:
    """Hold a graph in memory against the statement."""
    return contents.recount_of(statement, output, PublishedGraph, _looks)


def reopen(statement: Statement, files: tuple[Path, ...]) -> PublishedGraph:  # noqa: ARG001 - all is in the files
    """Read what was published, as anyone can."""
    return PublishedGraph(*map(contents.read, files))


def _looks(statement: Statement, output: TwoTables) -> Iterator[CheckOutcome]:
    return contents.graph_looks(statement, output, ([NODE], [FROM, TO]), _blocks)


def _blocks(statement: Statement, output: TwoTables) -> Problem | None:
    step = statement.basis.need(DrawFromBlocks)
    many = len(set(output.nodes[step.column].to_pylist())) > step.blocks
    return Problem("there are more blocks than the certificate says") if many else None
