"""Block models: a synthetic graph from noisy numbers of edges inside and between declared blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from incrowd.core.claims.claim import Claim
from incrowd.core.claims.privacy import PurePrivacy
from incrowd.core.graph import Ends, Graph, simple
from incrowd.core.loss import Pure
from incrowd.core.plan import Method, Plan
from incrowd.core.statement import Statement
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee, assumptions, fold
from incrowd.core.terms import Condition, Theorem
from incrowd.core.words import counted
from incrowd.drawing.markup import Description
from incrowd.errors import InvalidParameter
from incrowd.methods.graphs.shared.check import TwoTablesCheck
from incrowd.methods.graphs.shared.claims import WIDEST, Reasons, private
from incrowd.methods.graphs.shared.matrices import pairs_at, subset
from incrowd.methods.graphs.shared.outputs import (
    NodeLabels,
    PublishedGraph,
    TwoTables,
)
from incrowd.methods.graphs.shared.picture import GraphPicture
from incrowd.methods.graphs.shared.steps import Connect, require_edges, spent
from incrowd.verifier.check import Problem, one

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim
    from incrowd.core.coins import Coins
    from incrowd.core.schema import Schema
    from incrowd.core.unit import Unit


_SOURCE = Theorem(
    "edge-moves-one-block-count",
    "an edge lies between two blocks that do not depend on edges, and moves one of the counts by 1 (Dwork, McSherry, "
    "Nissim & Smith 2006); integer Laplace noise",
)


_GRAPH_FROM_NOISY_COUNTS = Condition(
    "graph-from-noisy-counts", "every count gets noise of its own, and the graph is drawn from the noisy counts alone"
)
_GRAPH_SIMPLE = Condition("graph-simple", "the written graph is simple")


@dataclass(frozen=True)
class DrawFromBlocks(Step):
    """Edges are counted inside and between blocks with noise, and a graph is drawn from these counts alone."""

    kind: ClassVar[str] = "draw from blocks"
    title: ClassVar[str] = "Draw a graph from noisy counts"
    tables: ClassVar[int] = 2

    column: str
    blocks: int
    scale: Fraction

    def __post_init__(self) -> None:
        if not 0 < self.scale <= WIDEST or self.blocks < 1:
            raise InvalidParameter("the scale of noise is above 0 and at most 2^48, and there is at least one block.")

    @property
    def sentence(self) -> str:
        return (
            f"Nodes fall into {counted(self.blocks, 'block')} by “{self.column}”, which is declared. The number of "
            f"edges inside each and between any two gets integer Laplace noise of scale {self.scale}; so many edges "
            "are then drawn at places where the blocks allow them, every place as likely. No edge of the data is "
            "published."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        if inner.loss is not None:
            return inner
        if not unit.kind.of_edges:
            raise InvalidParameter("one node changes counts between blocks without bound.")
        return StepGuarantee(Pure(1 / self.scale), (_SOURCE,), assumptions(unit))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        reasons = Reasons(
            (_GRAPH_FROM_NOISY_COUNTS,),
            (_GRAPH_SIMPLE,),
        )
        return (private(basis, "laplace", self.scale, reasons),)


Counts = NDArray[np.int64]


def block_counts(graph: Graph, blocks: NDArray[np.int32], number: int) -> Counts:
    """Return how many edges there are inside and between blocks: (0, 0), (0, 1) and so on, then (1, 1) and so on.

    One edge is counted once: it moves these numbers by 1 in all.
    """
    ends = np.sort(blocks[graph.ends].astype(np.int64), axis=1).reshape(-1, 2)
    square = np.bincount(ends[:, 0] * number + ends[:, 1], minlength=number * number).reshape(number, number)
    return np.asarray(square[np.triu_indices(number)], np.int64)


def edges_from(counts: Counts, blocks: NDArray[np.int32], number: int, coins: Coins) -> Ends:
    """Return edges at places drawn by coins, as many for each pair of blocks as it says, or as there is room for."""
    members = [np.flatnonzero(blocks == block) for block in range(number)]
    parts = [np.zeros((0, 2), np.int64)]
    for count, row, column in zip(counts.tolist(), *np.triu_indices(number), strict=True):
        first, second = members[row], members[column]
        room = len(first) * (len(first) - 1) // 2 if row == column else len(first) * len(second)
        places = subset(room, min(max(0, count), room), coins)
        if row == column:
            low, high = pairs_at(places)
            parts.append(np.stack([first[low], first[high]], axis=1))
        elif len(places):
            parts.append(np.stack([first[places // len(second)], second[places % len(second)]], axis=1))
    pairs = np.concatenate(parts)
    return simple(pairs, len(blocks)) if len(pairs) else pairs


_MOST_BLOCKS = 1000  # half a million pairs of blocks, each with a count of its own: most would be noise


@dataclass(frozen=True, kw_only=True)
class BlockModel(Method):
    """A graph drawn from a block model: nodes with their blocks, and edges by noisy counts inside and between them.

    Guarantee: ε-differential privacy for each edge; blocks come from a declared column of nodes, never from edges.

    Assumes: nodes, their number and their blocks may be known to anyone; all releases of this graph go through one
    ledger.

    Source: Holland, Laskey & Leinhardt 1983 (block models); Dwork, McSherry, Nissim & Smith 2006 (noise).

    >>> BlockModel(column="club", epsilon=Fraction(1), levels={"club": 1}).column
    'club'
    """

    name: ClassVar[str] = "block-model"

    column: str
    epsilon: Fraction
    levels: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.epsilon <= 0:
            raise InvalidParameter("epsilon must be above 0.")

    def plan(self, schema: Schema) -> Plan:
        require_edges(schema, "counts between blocks")
        labels = NodeLabels.of(schema, (self.column,), self.levels)
        classes = labels.recodings[0].classes
        number = 0 if classes is None else len(classes)
        if number > _MOST_BLOCKS:
            raise InvalidParameter(
                f"{number:,} blocks have too many pairs for a count of each; {_MOST_BLOCKS:,} are the most. Choose a "
                "higher level."
            )
        if self.column in schema.drafted:
            raise InvalidParameter(
                f"the values of {self.column!r} were drafted from rows. Where the same is public, write public: "
                '"source" there.'
            )
        steps = (DrawFromBlocks(self.column, number, 1 / self.epsilon),)
        guarantee = fold(steps, schema.unit)

        def draw(graph: Graph, coins: Coins) -> PublishedGraph:
            blocks = labels.codes(graph)[0]
            counts = block_counts(graph, blocks, number)
            noisy = counts + coins.laplace(1 / self.epsilon, len(counts))
            made = graph.with_ends(edges_from(noisy, blocks, number, coins))
            return PublishedGraph.of(made, labels.texts(graph), coins)

        settings = {"epsilon": self.epsilon, "blocks": number}
        return Plan(self.name, steps, guarantee, spent(guarantee), draw, settings=settings)


@dataclass(frozen=True, kw_only=True)
class BlocksCheck(TwoTablesCheck):
    """No more blocks than the step names."""

    def columns(self, statement: Statement) -> tuple[str, ...]:
        return (statement.basis.need(DrawFromBlocks).column,)

    def shape(self, statement: Statement, output: TwoTables) -> Problem | None:
        step = statement.basis.need(DrawFromBlocks)
        many = len(set(output.nodes[step.column].to_pylist())) > step.blocks
        return Problem("there are more blocks than the certificate says") if many else None


class BlocksPicture(GraphPicture):
    """A synthetic graph drawn from noisy counts of blocks."""

    def description(self, statement: Statement) -> Description:
        step = statement.basis.need(DrawFromBlocks)
        full = (
            f"Nodes with their “{step.column}”, and edges drawn from noisy counts inside and between {step.blocks} "
            "blocks. No edge of the data is published; an equal edge is a coincidence."
        )
        return Description("A synthetic graph", full, "edges that were drawn")


METHOD = BlockModel
CHECK = BlocksCheck(
    order=(one(Connect), one(DrawFromBlocks)),
    claims=(PurePrivacy,),
    output=PublishedGraph,
    edges_only="noisy counts of blocks protect an edge, and the guarantee is about another unit",
)
PICTURE = BlocksPicture(
    "The published graph, drawn from noisy counts", exact=False, evidence={"nodes": "Nodes", "edges": "Edges drawn"}
)
