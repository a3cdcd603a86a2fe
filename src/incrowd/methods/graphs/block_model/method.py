"""Block models: a synthetic graph from noisy numbers of edges inside and between declared blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.plan import Plan
from incrowd.core.steps.step import fold
from incrowd.errors import InvalidParameter
from incrowd.methods.graphs.block_model.drawing import block_counts, drawn
from incrowd.methods.graphs.block_model.steps import DrawFromBlocks
from incrowd.methods.graphs.labels import NodeLabels
from incrowd.methods.graphs.outputs import PublishedGraph
from incrowd.methods.graphs.units import require_edges, spent

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.graph import Graph
    from incrowd.core.schema import Schema

_MOST_BLOCKS = 1000


@dataclass(frozen=True, kw_only=True)
class BlockModel:
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
        """Guarantee from the schema alone."""
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
            made = graph.with_ends(drawn(noisy, blocks, number, coins))
            return PublishedGraph.of(made, labels.texts(graph), coins)

        settings = {"epsilon": self.epsilon, "blocks": number}
        return Plan(self.name, steps, guarantee, spent(guarantee), draw, settings=settings)
