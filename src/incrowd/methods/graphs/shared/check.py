"""The files of a published graph, read again: numbered nodes, and edges between them, each once and in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from incrowd.core.claims.claim import Claim
from incrowd.core.statement import Statement
from incrowd.engines.readers.sources import open_source
from incrowd.mechanisms.polynomial import PolynomialNoise
from incrowd.methods.graphs.shared.outputs import (
    CLUSTERING,
    COUNT,
    FROM,
    INSIDE,
    INSIDE_OF_KIND,
    NODE,
    OF_KIND,
    SIZE,
    TO,
    TRIANGLES,
    WEDGES,
    TwoTables,
)
from incrowd.methods.shared.outcome import Outcome
from incrowd.verifier.check import Check, CheckOutcome, Problem

WHOLE = frozenset({NODE, FROM, TO, SIZE, INSIDE, COUNT, TRIANGLES, WEDGES, "degree", "count", "number"})
_TOLERANCE = 1 + 1e-9  # logarithms here are floats


def read(file: Path) -> pa.Table:
    """Read a published table: numbers in the columns that hold them, text in all others."""
    source = open_source(str(file))
    names = list(source.names)
    types = pa.schema([(name, _type(name)) for name in names])
    return pa.Table.from_batches([batch.cast(types) for batch in source.batches(names)], schema=types)


def _type(name: str) -> pa.DataType:
    return (
        pa.int64()
        if name in WHOLE or name.startswith((OF_KIND, INSIDE_OF_KIND))
        else pa.float64()
        if name == CLUSTERING
        else pa.string()
    )


def polynomial_problem(noise: PolynomialNoise) -> Problem | None:
    """Return a problem if polynomial noise costs more than its ε, by the formula that was proved; else None."""
    beta, kappa, a = -log(float(noise.ratio)), float(noise.kappa), noise.power + 1
    loss = max(beta * (a - 1), a * log(1 + kappa), beta + a * log(1 + kappa * exp(-beta)))
    if loss <= float(noise.epsilon) * _TOLERANCE:
        return None
    return Problem("polynomial noise of this shape costs more than the epsilon of the steps")


@dataclass(frozen=True, kw_only=True)
class GraphCheck(Check):
    """Files of a graph: they hold an output of one class, and what it shows is what the steps can give.

    `output` is that class, `edges_only` a sentence that refuses any unit but edges, `hidden` what no file can show.
    """

    output: type[Outcome]
    edges_only: str | None = None
    hidden: str | None = None

    def columns(self, statement: Statement) -> tuple[str, ...]:
        """Return the node columns that the steps release."""
        return ()

    def contradiction(self, statement: Statement) -> Problem | None:
        if self.edges_only is not None and not statement.basis.unit.kind.of_edges:
            return Problem(self.edges_only)
        if statement.released != self.columns(statement):
            return Problem("the labels of nodes are not the released columns")
        return None

    def undecidable(self, claim: Claim) -> Problem | None:
        return None if self.hidden is None else Problem(self.hidden, undecided=True)

    def inspect(self, statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
        return self.outcomes(statement, self.reopen(statement, files))

    def recount(self, statement: Statement, output: Any) -> Problem | None:
        if not isinstance(output, self.output):
            return Problem("it is not such an output")
        problems = (outcome.problem for outcome in self.outcomes(statement, output))
        return next((problem for problem in problems if problem is not None and not problem.undecided), None)

    def reopen(self, statement: Statement, files: tuple[Path, ...]) -> Any:
        return self.output(*map(read, files))

    def outcomes(self, statement: Statement, output: Any) -> Iterator[CheckOutcome]:
        """Compare an output with the statement."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class TwoTablesCheck(GraphCheck):
    """Numbered nodes in one file and edges between them in another; `heads` are the columns of both."""

    heads: tuple[tuple[str, ...], tuple[str, ...]] = ((NODE,), (FROM, TO))

    def head(self, statement: Statement) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the columns of both tables, without the labels of nodes."""
        return self.heads

    def shape(self, statement: Statement, output: TwoTables) -> Problem | None:
        """Return what the graph shows that the steps cannot give, or None."""
        return None

    def outcomes(self, statement: Statement, output: TwoTables) -> Iterator[CheckOutcome]:
        nodes, edges = self.head(statement)
        other = tuple(output.nodes.column_names) != (*nodes, *statement.released)
        other = other or tuple(output.edges.column_names) != edges
        columns = Problem("the columns are not those that the certificate says are released") if other else None
        yield CheckOutcome(
            "columns in the files", columns, "they are the released ones, and numbers of nodes and edges"
        )
        if other:
            return
        wrong = _nodes(output) or _edges(output)
        yield CheckOutcome("nodes and edges in the files", wrong, "each node once, each edge once, and no loops")
        if wrong is None:
            yield CheckOutcome("what the graph shows", self.shape(statement, output), "it is what the steps can give")


def _nodes(output: TwoTables) -> Problem | None:
    numbers = output.nodes[NODE]
    same = numbers.null_count == 0 and np.array_equal(numbers.to_numpy(), np.arange(1, output.nodes.num_rows + 1))
    return None if same else Problem("the nodes are not numbered one after the other")


def _edges(output: TwoTables) -> Problem | None:
    if any(column.null_count for column in output.edges.columns):
        return Problem("some edge has no ends")
    (low, high), size = output.numbers, len(output)
    if not len(low):
        return None
    if low.min() < 1 or high.max() > size or np.any(low >= high):
        return Problem("some edge does not join two different nodes, the smaller number first")
    keys = low * size + high
    return Problem("some edge stands twice, or not in order") if np.any(keys[1:] <= keys[:-1]) else None
