"""The files of a published graph, read again: numbered nodes, and edges between them, each once and in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import exp, log
from pathlib import Path

import numpy as np
import pyarrow as pa

from incrowd.core.plan import Output
from incrowd.core.statement import Statement
from incrowd.engines.readers.sources import open_source
from incrowd.mechanisms.polynomial import PolynomialNoise
from incrowd.methods.graphs.outputs import CLUSTERING, COUNT, FROM, INSIDE, NODE, SIZE, TO, TRIANGLES, WEDGES, TwoTables
from incrowd.verifier.check import CheckOutcome, Problem

WHOLE = frozenset({NODE, FROM, TO, SIZE, INSIDE, COUNT, TRIANGLES, WEDGES, "degree", "count", "number"})
_TOLERANCE = 1 + 1e-9  # logarithms here are floats
Finds = Callable[[Statement, TwoTables], Problem | None]


def read(file: Path) -> pa.Table:
    """Read a published table: numbers in the columns that hold them, text in all others."""
    source = open_source(str(file))
    names = list(source.names)
    types = pa.schema([(name, _type(name)) for name in names])
    return pa.Table.from_batches([batch.cast(types) for batch in source.batches(names)], schema=types)


def _type(name: str) -> pa.DataType:
    return pa.int64() if name in WHOLE else pa.float64() if name == CLUSTERING else pa.string()


def polynomial_problem(noise: PolynomialNoise) -> Problem | None:
    """Return that polynomial noise costs more than its ε, by the formula that was proved; or None."""
    beta, kappa, a = -log(float(noise.ratio)), float(noise.kappa), noise.power + 1
    loss = max(beta * (a - 1), a * log(1 + kappa), beta + a * log(1 + kappa * exp(-beta)))
    if loss <= float(noise.epsilon) * _TOLERANCE:
        return None
    return Problem("polynomial noise of this shape costs more than the epsilon of the steps")


def columns_problem(statement: Statement, columns: tuple[str, ...]) -> Problem | None:
    """Return that the labels of nodes are not the released columns, or None."""
    return None if statement.released == columns else Problem("the labels of nodes are not the released columns")


def graph_looks(
    statement: Statement, output: TwoTables, heads: tuple[list[str], list[str]], finds: Finds
) -> Iterator[CheckOutcome]:
    """Look at the columns, the nodes and the edges, and at what the method guarantees of them."""
    own, joined = heads
    strange = output.nodes.column_names != [*own, *statement.released] or output.edges.column_names != joined
    columns = Problem("the columns are not those that the certificate says are released") if strange else None
    yield CheckOutcome("columns in the files", columns, "they are the released ones, and numbers of nodes and edges")
    if strange:
        return
    wrong = _nodes(output) or _edges(output)
    yield CheckOutcome("nodes and edges in the files", wrong, "each node once, each edge once, and no loops")
    if wrong is None:
        yield CheckOutcome("what the graph shows", finds(statement, output), "it is what the steps can give")


def first_problem(looks: Iterator[CheckOutcome]) -> Problem | None:
    """Return the first problem that looks found, or None."""
    found = (look.problem for look in looks)
    return next((problem for problem in found if problem is not None and not problem.undecided), None)


def recount_of(
    statement: Statement,
    output: Output,
    cls: type[TwoTables],
    looks: Callable[[Statement, TwoTables], Iterator[CheckOutcome]],
) -> Problem | None:
    """Hold a graph in memory against the statement."""
    if not isinstance(output, cls):
        return Problem("it is not such a graph")
    return first_problem(looks(statement, output))


def _nodes(output: TwoTables) -> Problem | None:
    numbers = output.nodes[NODE]
    same = numbers.null_count == 0 and np.array_equal(numbers.to_numpy(), np.arange(1, output.nodes.num_rows + 1))
    return None if same else Problem("the nodes are not numbered one after the other")


def _edges(output: TwoTables) -> Problem | None:
    if any(column.null_count for column in output.edges.columns):
        return Problem("some edge has no ends")
    ends = output.ends
    if not len(ends):
        return None
    low, high, size = ends[:, 0], ends[:, 1], len(output)
    if low.min() < 0 or high.max() >= size or np.any(low >= high):
        return Problem("some edge does not join two different nodes, the smaller number first")
    return Problem("some edge stands twice, or not in order") if np.any(np.diff(low * size + high) <= 0) else None
