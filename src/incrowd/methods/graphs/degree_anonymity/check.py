"""The files of a k-degree anonymous graph: its degrees are counted again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from incrowd.core.claims.claim import Claim
from incrowd.core.plan import Output
from incrowd.core.statement import Statement
from incrowd.core.steps.step import Step
from incrowd.methods.graphs import contents
from incrowd.methods.graphs.claims import DegreeAnonymity
from incrowd.methods.graphs.degree_anonymity.steps import LevelDegrees
from incrowd.methods.graphs.outputs import FROM, NODE, TO, PublishedGraph, TwoTables
from incrowd.methods.graphs.steps import Connect
from incrowd.verifier.check import CheckOutcome, Problem, one

STEPS: tuple[type[Step], ...] = (Connect, LevelDegrees)
CLAIMS: tuple[type[Claim], ...] = (DegreeAnonymity,)
ORDER = (one(Connect), one(LevelDegrees))
_DEGREE = "degree in the published graph"


def contradiction(statement: Statement) -> Problem | None:
    """Return that the labels are not the released columns, or None."""
    return contents.columns_problem(statement, statement.basis.need(LevelDegrees).columns)


def looks(statement: Statement, files: tuple[Path, ...]) -> Iterator[CheckOutcome]:
    """Look at the nodes, the edges and the degrees."""
    return _looks(statement, reopen(statement, files))


def recount(statement: Statement, output: Output) -> Problem | None:
    """Hold a graph in memory against the statement."""
    return contents.recount_of(statement, output, PublishedGraph, _looks)


def reopen(statement: Statement, files: tuple[Path, ...]) -> PublishedGraph:  # noqa: ARG001 - all is in the files
    """Read what was published, as anyone can."""
    return PublishedGraph(*map(contents.read, files))


def _looks(statement: Statement, output: TwoTables) -> Iterator[CheckOutcome]:
    return contents.graph_looks(statement, output, ([NODE], [FROM, TO]), _rare)


def _rare(statement: Statement, output: TwoTables) -> Problem | None:
    """Count how often each node is an end of an edge, and how many nodes share that number and all labels."""
    ends = np.concatenate([output.edges[name].to_numpy() for name in (FROM, TO)]).astype(np.int64)
    labeled = output.nodes.drop_columns([NODE]).append_column(
        _DEGREE, pa.array(np.bincount(ends, minlength=len(output) + 1)[1:])
    )
    classes = labeled.group_by(labeled.column_names).aggregate([([], "count_all")])["count_all"].to_pylist()
    least = statement.basis.need(LevelDegrees).k
    small = any(number < least for number in classes)
    return Problem("some degree is shared by fewer nodes than the certificate says") if small else None
