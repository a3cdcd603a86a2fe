"""The file of kinds of edges: each declared kind once, and its degrees one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pyarrow as pa

from incrowd.core.claims.claim import Claim
from incrowd.core.claims.privacy import PurePrivacy
from incrowd.core.plan import Output
from incrowd.core.statement import Statement
from incrowd.core.steps.step import Step
from incrowd.methods.graphs import contents
from incrowd.methods.graphs.edge_kinds.steps import EDGES, NoisyKinds
from incrowd.methods.graphs.outputs import GraphNumbers
from incrowd.methods.graphs.steps import Relate
from incrowd.verifier.check import CheckOutcome, Problem, one

STEPS: tuple[type[Step], ...] = (Relate, NoisyKinds)
CLAIMS: tuple[type[Claim], ...] = (PurePrivacy,)
ORDER = (one(Relate), one(NoisyKinds))


def contradiction(statement: Statement) -> Problem | None:
    """Return that edges were read otherwise than they are priced, or that node columns are released; or None."""
    if statement.basis.need(Relate).relations != statement.basis.need(NoisyKinds).relations:
        return Problem("the kinds and directions that were read are not those that the noise is made for")
    return contents.columns_problem(statement, ())


def looks(statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
    """Look at the columns, the kinds and the degrees."""
    (file,) = files
    return _looks(statement, contents.read(file))


def recount(statement: Statement, output: Output) -> Problem | None:
    """Hold numbers in memory against the statement."""
    if not isinstance(output, GraphNumbers):
        return Problem("it is not a table of numbers of a graph")
    return contents.first_problem(_looks(statement, output.table))


def reopen(statement: Statement, files: tuple[Path, ...]) -> GraphNumbers:  # noqa: ARG001 - all is in the file
    """Read what was published, as anyone can."""
    return GraphNumbers(contents.read(files[0]))


def _looks(statement: Statement, table: pa.Table) -> Iterator[CheckOutcome]:
    step = statement.basis.need(NoisyKinds)
    names = ["kind", "number"] if step.count == EDGES else ["kind", "direction", "degree", "count"]
    strange = table.column_names != names
    columns = Problem("the columns are not those of such a table") if strange else None
    yield CheckOutcome("columns in the file", columns, f"they are {', '.join(names)}")
    if not strange:
        yield CheckOutcome("kinds in the file", _kinds(step, table), "each stands once, in order, with its degrees")


def _kinds(step: NoisyKinds, table: pa.Table) -> Problem | None:
    kinds = list(step.kinds or ("all",))
    if step.count == EDGES:
        found, numbers = table["kind"].to_pylist(), table["number"]
        return Problem("the kinds are not those declared") if found != kinds or numbers.null_count else None
    rows = zip(*(table[name].to_pylist() for name in ("kind", "direction", "degree", "count")), strict=True)
    parts = [(key, list(part)) for key, part in groupby(rows, key=lambda row: row[:2])]
    ways = ["out", "in"] if step.directed else ["both"]
    if [key for key, _ in parts] != [(kind, way) for kind in kinds for way in ways]:
        return Problem("the kinds and directions are not those declared")
    for _, part in parts:
        if [row[2] for row in part] != list(range(len(part))) or any(row[3] is None or row[3] < 0 for row in part):
            return Problem("the degrees of some kind do not stand one after the other from 0 on, with a count each")
    return None
