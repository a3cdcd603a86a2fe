"""Kinds of edges: how many there are of each, or who has how many, with noise for one edge or for all of a pair."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import pyarrow as pa
from markupsafe import Markup

from incrowd.core.claims.claim import Claim
from incrowd.core.claims.privacy import PurePrivacy
from incrowd.core.graph import Relations
from incrowd.core.loss import Pure
from incrowd.core.plan import Method, Plan
from incrowd.core.statement import Statement
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee, assumptions, fold
from incrowd.core.terms import Condition, Theorem
from incrowd.drawing.charts import Bar, bars
from incrowd.drawing.markup import Description, figure, table
from incrowd.drawing.picture import Picture
from incrowd.errors import InvalidParameter
from incrowd.methods.graphs.shared.check import GraphCheck
from incrowd.methods.graphs.shared.claims import WIDEST, Reasons, private
from incrowd.methods.graphs.shared.degrees import fitted
from incrowd.methods.graphs.shared.outputs import (
    GraphNumbers,
)
from incrowd.methods.graphs.shared.steps import Relate, relations_of, require_edges, spent
from incrowd.verifier.check import CheckOutcome, Problem, one

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from incrowd.core.claims.claim import Claim
    from incrowd.core.coins import Coins
    from incrowd.core.graph import Graph
    from incrowd.core.schema import Schema
    from incrowd.core.unit import Kind, Unit


EDGES, DEGREES = "edges", "degrees"
_SOURCE = Theorem(
    "edge-moves-its-kind",
    "one edge moves the number of edges of its kind by 1, and the degrees of its kind by 2 in all, or the degrees out "
    "and in by 1 each; a unit moves them by as much for each edge that it can have (Dwork, McSherry, Nissim & Smith "
    "2006, Hay, Li, Miklau & Jensen 2009 for degrees in order); integer Laplace noise",
)
_PROVED = Condition(
    "numbers-noisy", "every number gets noise of its own, and all that follows is computed from the noisy numbers alone"
)


_KINDS_LISTED_ONCE = Condition("kinds-listed-once", "the written table lists each kind and degree once")


@dataclass(frozen=True)
class NoisyKinds(Step):
    """Numbers of edges of each kind, or their degrees in order, get noise for all edges that a unit can have."""

    kind: ClassVar[str] = "noisy kinds"
    title: ClassVar[str] = "Noise on kinds of edges"

    count: str
    scale: Fraction
    kinds: tuple[str, ...] = ()
    directed: bool = False

    def __post_init__(self) -> None:
        if self.count not in (EDGES, DEGREES) or not 0 < self.scale <= WIDEST:
            raise InvalidParameter("edges or degrees are counted, with noise of a scale above 0 and at most 2^48.")

    @property
    def relations(self) -> Relations:
        """What is declared of edges."""
        return Relations(self.kinds, self.directed)

    def reach(self, kind: Kind) -> int:
        """Return how far one unit moves all numbers together."""
        if not kind.of_edges:
            raise InvalidParameter("one node changes the edges of every kind without bound.")
        return (2 if self.count == DEGREES else 1) * self.relations.slots(kind)

    @property
    def sentence(self) -> str:
        noise = f"integer Laplace noise of scale {self.scale}"
        of = "of each kind" if self.kinds else "of all kinds together"
        if self.count == EDGES:
            way = ", an edge in either direction counting for itself," if self.directed else ""
            return f"The number of edges {of}{way} gets {noise}."
        way = " out and in" if self.directed else ""
        return (
            f"The degrees{way} {of} in ascending order get {noise}, and the sequences that do not fall and lie nearest "
            "to them are rounded and counted, degree by degree."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        if inner.loss is not None:
            return inner
        return StepGuarantee(Pure(self.reach(unit.kind) / self.scale), (_SOURCE,), assumptions(unit))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        reasons = Reasons((_PROVED,), (_KINDS_LISTED_ONCE,))
        return (private(basis, "laplace", self.scale, reasons),)


ALL = "all"
BOTH, OUT, IN = "both", "out", "in"
"""Which edges of a node a degree counts: those in either direction, those from it, those to it."""


@dataclass(frozen=True, kw_only=True)
class EdgeKinds(Method):
    """Numbers of edges, or distributions of degrees, of each declared kind; out and in where edges are directed.

    Guarantee: ε-differential privacy for all edges of a pair of nodes, or for one edge of one kind and direction: what
    a unit can have is counted from the declaration, and priced so.

    Assumes: kinds were declared without looking at the edges; nodes and their number may be known; all releases of this
    graph go through one ledger.

    Source: Dwork, McSherry, Nissim & Smith 2006; Hay, Li, Miklau & Jensen 2009 (degrees).

    >>> EdgeKinds(count="edges", epsilon=Fraction(1)).count
    'edges'
    """

    name: ClassVar[str] = "edge-kinds"
    apart: ClassVar[bool] = True

    count: Literal["edges", "degrees"]
    epsilon: Fraction

    def __post_init__(self) -> None:
        if self.epsilon <= 0:
            raise InvalidParameter("epsilon must be above 0.")

    def plan(self, schema: Schema) -> Plan:
        require_edges(schema, "the edges of every kind")
        declared = relations_of(schema)
        reach = NoisyKinds(self.count, Fraction(1), declared.kinds, declared.directed).reach(schema.unit.kind)
        step = NoisyKinds(self.count, reach / self.epsilon, declared.kinds, declared.directed)
        guarantee = fold((step,), schema.unit)

        def draw(graph: Graph, coins: Coins) -> GraphNumbers:
            return GraphNumbers(self._table(graph, step, coins))

        settings = {"epsilon": self.epsilon, "scale": step.scale, "edges of a unit": declared.slots(schema.unit.kind)}
        return Plan(self.name, (step,), guarantee, spent(guarantee), draw, settings=settings)

    def _table(self, graph: Graph, step: NoisyKinds, coins: Coins) -> pa.Table:
        names, numbers = step.kinds or (ALL,), self.numbers(graph, directed=step.directed)
        noisy = [number + coins.laplace(step.scale, len(number)) for number in numbers]
        if self.count == EDGES:
            return pa.table({"kind": list(names), "number": np.concatenate(noisy)})
        ways = (OUT, IN) if step.directed else (BOTH,)
        counts = [np.bincount(fitted(degrees), minlength=1) for degrees in noisy]
        sizes = [len(count) for count in counts]
        columns = [(name, way) for name in names for way in ways]
        return pa.table(
            {
                "kind": np.repeat([name for name, _ in columns], sizes).tolist(),
                "direction": np.repeat([way for _, way in columns], sizes).tolist(),
                "degree": np.concatenate([np.arange(size) for size in sizes]),
                "count": np.concatenate(counts),
            }
        )

    def statistic(self, graph: Graph, *, directed: bool = False) -> NDArray[np.int64]:
        """Return all numbers that get noise, one after the other."""
        return np.concatenate(self.numbers(graph, directed=directed))

    def numbers(self, graph: Graph, *, directed: bool) -> list[NDArray[np.int64]]:
        """Return the numbers that get noise: edges of each kind, or degrees in order of each kind and direction."""
        if self.count == EDGES:
            return [np.array([len(layer)], np.int64) for layer in graph.layers]
        ends = [[layer[:, 0], layer[:, 1]] if directed else [layer.ravel()] for layer in graph.layers]
        return [np.sort(np.bincount(part, minlength=graph.size)) for layer in ends for part in layer]


@dataclass(frozen=True, kw_only=True)
class KindsCheck(GraphCheck):
    """Every declared kind once, in order, with its numbers."""

    def contradiction(self, statement: Statement) -> Problem | None:
        if statement.basis.need(Relate).relations != statement.basis.need(NoisyKinds).relations:
            return Problem("the kinds and directions that were read are not those that the noise is made for")
        return super().contradiction(statement)

    def outcomes(self, statement: Statement, output: GraphNumbers) -> Iterator[CheckOutcome]:
        step = statement.basis.need(NoisyKinds)
        names = ["kind", "number"] if step.count == EDGES else ["kind", "direction", "degree", "count"]
        other = output.table.column_names != names
        columns = Problem("the columns are not those of such a table") if other else None
        yield CheckOutcome("columns in the file", columns, f"they are {', '.join(names)}")
        if not other:
            problem = _kinds_problem(step, output.table)
            yield CheckOutcome("kinds in the file", problem, "each stands once, in order, with its degrees")


def _kinds_problem(step: NoisyKinds, table: pa.Table) -> Problem | None:
    kinds = list(step.kinds or ("all",))
    if step.count == EDGES:
        other = table["kind"].to_pylist() != kinds or table["number"].null_count
        return Problem("the kinds are not those declared") if other else None
    rows = zip(*(table[name].to_pylist() for name in ("kind", "direction", "degree", "count")), strict=True)
    parts = [(key, list(part)) for key, part in groupby(rows, key=lambda row: row[:2])]
    ways = ["out", "in"] if step.directed else ["both"]
    if [key for key, _ in parts] != [(kind, way) for kind in kinds for way in ways]:
        return Problem("the kinds and directions are not those declared")
    for _, part in parts:
        if [row[2] for row in part] != list(range(len(part))) or any(row[3] is None or row[3] < 0 for row in part):
            return Problem("the degrees of some kind do not stand one after the other from 0 on, with a count each")
    return None


class KindsPicture(Picture):
    """Numbers of each kind."""

    evidence: Mapping[str, str] | None = {"numbers": "Numbers published"}

    def description(self, statement: Statement) -> Description:
        step = statement.basis.need(NoisyKinds)
        what = "How many edges there are" if step.count == EDGES else "How many nodes have each degree"
        of = "of each kind" if step.kinds else "of all kinds together"
        full = f"{what} {of}, with noise. No node and no edge is published."
        return Description("Kinds of edges", full, "noisy numbers")

    def draw(self, statement: Statement, output: GraphNumbers) -> Markup | None:
        rows = output.table.to_pylist()[:200]
        if statement.basis.need(NoisyKinds).count == EDGES:
            words = "How many edges there are; every number carries noise."
            chart = bars(words, [Bar(row["kind"], row["number"], False) for row in rows])
            cells = [[row["kind"], row["number"]] for row in rows]
            return figure(chart, words, table("Edges", ["Kind", "Edges"], cells))
        cells = [[row["kind"], row["direction"], row["degree"], row["count"]] for row in rows]
        return table("How many nodes have each degree, with noise", ["Kind", "Edges counted", "Degree", "Nodes"], cells)


METHOD = EdgeKinds
CHECK = KindsCheck(order=(one(Relate), one(NoisyKinds)), claims=(PurePrivacy,), output=GraphNumbers)
PICTURE = KindsPicture()
