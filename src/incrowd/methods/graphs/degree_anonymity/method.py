"""The step of k-degree anonymity: edges change until no degree is rare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from incrowd.core.claims.claim import Claim
from incrowd.core.loss import Syntactic
from incrowd.core.plan import Method, Plan
from incrowd.core.statement import Statement
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee, fold
from incrowd.drawing.markup import Description
from incrowd.errors import InvalidParameter
from incrowd.methods.graphs.degree_anonymity.realization import anonymized
from incrowd.methods.graphs.degree_anonymity.sequence import MOST_NODES
from incrowd.methods.graphs.shared.check import TwoTablesCheck
from incrowd.methods.graphs.shared.claims import DegreeAnonymity, degree_anonymity
from incrowd.methods.graphs.shared.outputs import (
    NODE,
    NodeLabels,
    PublishedGraph,
    TwoTables,
    require_crowds,
)
from incrowd.methods.graphs.shared.picture import GraphPicture
from incrowd.methods.graphs.shared.steps import NOT_PRIVATE, Connect, unit_of
from incrowd.verifier.check import Problem, one

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim
    from incrowd.core.coins import Coins
    from incrowd.core.graph import Graph
    from incrowd.core.schema import Schema
    from incrowd.core.unit import Unit


@dataclass(frozen=True)
class LevelDegrees(Step):
    """Edges change, as few as can be found, until each degree is shared by k nodes."""

    kind: ClassVar[str] = "level degrees"
    title: ClassVar[str] = "Change edges until no degree is rare"
    tables: ClassVar[int] = 2

    k: int
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.k < 2:
            raise InvalidParameter("k-degree anonymity needs k of at least 2.")

    @property
    def sentence(self) -> str:
        same = f" with the same {', '.join(self.columns)}" if self.columns else ""
        return (
            f"Edges are added, moved or removed until every degree is shared by {self.k} nodes{same}. In a graph of up "
            f"to {MOST_NODES} nodes these are the fewest changes, if a search of bounded length proves it; else "
            "degrees are only raised, as little as a graph allows that could be found. Nodes get new numbers, in "
            "random order. This reads all edges."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        if inner.loss is not None:
            return inner
        return StepGuarantee(Syntactic("k-degree anonymity", (("k", str(self.k)),)), (NOT_PRIVATE,))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim that no degree is rare."""
        return (degree_anonymity(self.k, self.columns, basis.unit),)


@dataclass(frozen=True, kw_only=True)
class DegreeAnonymous(Method):
    """A graph in which every degree is shared by at least k nodes, also among nodes with the same labels.

    Guarantee: a form, and no ε: for every node there are k − 1 others with the same degree and the same published
    labels.

    Assumes: nobody who reads the graph knows more of a person than the degree and the labels.

    Source: Liu & Terzi 2008; Erdős & Gallai 1960.

    >>> DegreeAnonymous(k=3).k
    3
    """

    name: ClassVar[str] = "degree-anonymity"
    libraries: ClassVar[tuple[str, ...] | None] = ("scipy.sparse",)

    k: int
    columns: tuple[str, ...] = ()
    levels: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.k < 2:
            raise InvalidParameter("k-degree anonymity needs k of at least 2.")

    def plan(self, schema: Schema) -> Plan:
        unit_of(schema)
        labels = NodeLabels.of(schema, self.columns, self.levels)
        steps = (LevelDegrees(self.k, self.columns),)

        def draw(graph: Graph, coins: Coins) -> PublishedGraph:
            ends = anonymized(graph, labels.classes(graph), self.k)
            return PublishedGraph.of(graph.with_ends(ends), labels.texts(graph), coins)

        def examine(graph: Graph) -> None:
            require_crowds(labels.classes(graph), self.k)  # which is all that can be in the way
            if graph.size <= MOST_NODES:
                import_module("scipy.optimize")  # which searches for the fewest changes, after the charge

        settings = {"k": self.k}
        return Plan(self.name, steps, fold(steps, schema.unit), {}, draw, settings=settings, examine=examine)


_DEGREE = "degree in the published graph"


@dataclass(frozen=True, kw_only=True)
class DegreeAnonymityCheck(TwoTablesCheck):
    """Every degree, with all labels, is shared by k nodes."""

    def columns(self, statement: Statement) -> tuple[str, ...]:
        return statement.basis.need(LevelDegrees).columns

    def shape(self, statement: Statement, output: TwoTables) -> Problem | None:
        labeled = output.nodes.drop_columns([NODE]).append_column(_DEGREE, pa.array(output.degrees))
        classes = labeled.group_by(labeled.column_names).aggregate([([], "count_all")])["count_all"].to_pylist()
        small = any(size < statement.basis.need(LevelDegrees).k for size in classes)
        return Problem("some degree is shared by fewer nodes than the certificate says") if small else None


class DegreeAnonymityPicture(GraphPicture):
    """A graph without rare degrees."""

    def description(self, statement: Statement) -> Description:
        k = statement.basis.need(LevelDegrees).k
        full = (
            f"A graph in which at least {k} nodes share every degree. Edges were added, moved or removed to that end; "
            "all others are true."
        )
        return Description("A graph without rare degrees", full, f"{k} nodes or more with the degree they look for")


METHOD = DegreeAnonymous
CHECK = DegreeAnonymityCheck(order=(one(Connect), one(LevelDegrees)), claims=(DegreeAnonymity,), output=PublishedGraph)
PICTURE = DegreeAnonymityPicture("The published graph")
