"""Super-nodes: a graph is told by groups of at least k nodes and the numbers of edges inside and between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa
from markupsafe import Markup
from numpy.typing import NDArray

from incrowd.core.claims.claim import Claim
from incrowd.core.graph import Ends, Graph
from incrowd.core.loss import Syntactic
from incrowd.core.plan import Method, Plan
from incrowd.core.statement import Statement
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee, fold
from incrowd.drawing.markup import Description
from incrowd.drawing.picture import Picture
from incrowd.errors import InvalidParameter
from incrowd.methods.graphs.shared.check import TwoTablesCheck
from incrowd.methods.graphs.shared.claims import GroupedNodes, generalized
from incrowd.methods.graphs.shared.matrices import adjacency
from incrowd.methods.graphs.shared.outputs import (
    COUNT,
    FROM,
    INSIDE,
    INSIDE_OF_KIND,
    NODE,
    OF_KIND,
    SIZE,
    TO,
    NodeLabels,
    SuperGraph,
    TwoTables,
    require_crowds,
)
from incrowd.methods.graphs.shared.picture import graph_figure
from incrowd.methods.graphs.shared.steps import NOT_PRIVATE, Connect, Relate, relations_of, unit_of
from incrowd.verifier.check import Problem, one

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim
    from incrowd.core.coins import Coins
    from incrowd.core.schema import Schema
    from incrowd.core.unit import Unit


@dataclass(frozen=True)
class GroupNodes(Step):
    """Nodes become super-nodes of at least k, of which sizes and numbers of edges are published."""

    kind: ClassVar[str] = "group nodes"
    title: ClassVar[str] = "Group nodes"
    tables: ClassVar[int] = 2

    k: int
    columns: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    """The kinds of edges that are counted apart."""

    def __post_init__(self) -> None:
        if self.k < 2:
            raise InvalidParameter("super-nodes have at least 2 nodes each: choose k of 2 or more.")

    @property
    def sentence(self) -> str:
        same = f" with the same {', '.join(self.columns)}" if self.columns else ""
        kinds = f" The same is told of each kind of edges: {', '.join(self.kinds)}." if self.kinds else ""
        return (
            f"Nodes near each other{same} become super-nodes of at least {self.k}. Of each its size and the exact "
            "number of connected pairs inside are published, and of every two the number of connected pairs between "
            f"them.{kinds} This looks at all edges."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        if inner.loss is not None:
            return inner
        return StepGuarantee(Syntactic("super-nodes", (("k", str(self.k)),)), (NOT_PRIVATE,))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim that members of a super-node are not told apart."""
        return (generalized(self.k, self.columns, self.kinds, basis.unit),)


Numbers = NDArray[np.int64]


def groups_of(graph: Graph, classes: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """Return the number of each node's group: at least k nodes of one class, near each other in the graph.

    Nodes are put in an order in which neighbors stand close (reverse Cuthill–McKee), class by class, and cut after
    every k; what is left over joins the last group of its class.
    """
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    near = np.empty(graph.size, np.int64)
    near[np.asarray(reverse_cuthill_mckee(adjacency(graph), symmetric_mode=True), np.int64)] = np.arange(graph.size)
    order = np.lexsort((near, classes))
    ordered = classes[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    sizes = np.diff(np.append(starts, len(ordered)))
    inside = np.arange(len(ordered)) - np.repeat(starts, sizes)
    number = np.minimum(inside // k, np.repeat(sizes // k - 1, sizes))
    before = np.append(0, np.cumsum(sizes // k))[:-1]
    result = np.empty(graph.size, np.int64)
    result[order] = number + np.repeat(before, sizes)
    return result


def super_graph(
    graph: Graph, groups: NDArray[np.int64], labels: dict[str, pa.Array], kinds: tuple[str, ...] = ()
) -> SuperGraph:
    """Return sizes, labels, and numbers of edges inside and between groups, exactly; of each named kind, too."""
    number = int(groups.max(initial=-1)) + 1
    inside, keys, between = _counts(graph.ends, groups, number)
    first = np.unique(groups, return_index=True)[1]
    labels_of_groups = {name: column.take(pa.array(first)) for name, column in labels.items()}
    layers = [_counts(layer, groups, number) for layer in graph.layers] if kinds else []
    own = {INSIDE_OF_KIND + kind: layer[0] for kind, layer in zip(kinds, layers, strict=True)}
    other = {OF_KIND + kind: _at(keys, *layer[1:]) for kind, layer in zip(kinds, layers, strict=True)}
    sizes = np.bincount(groups, minlength=number)
    nodes = pa.table({NODE: np.arange(1, number + 1), SIZE: sizes, INSIDE: inside, **own, **labels_of_groups})
    ends = {FROM: keys // max(1, number) + 1, TO: keys % max(1, number) + 1}
    return SuperGraph(nodes, pa.table({**ends, COUNT: between, **other}), groups)


def _counts(edges: Ends, groups: Numbers, number: int) -> tuple[Numbers, Numbers, Numbers]:
    """Return the numbers of edges inside each group; the pairs of groups with edges, and how many they have."""
    ends = np.sort(groups[edges], axis=1) if len(edges) else edges
    own = ends[:, 0] == ends[:, 1]
    keys, counts = np.unique(ends[~own, 0] * max(1, number) + ends[~own, 1], return_counts=True)
    return np.bincount(ends[own, 0], minlength=number), keys, counts


def _at(keys: Numbers, others: Numbers, counts: Numbers) -> Numbers:
    """Return the counts of pairs of groups, each of which is among the others or has none."""
    result = np.zeros(len(keys), np.int64)
    result[np.searchsorted(keys, others)] = counts
    return result


@dataclass(frozen=True, kw_only=True)
class SuperNodes(Method):
    """A graph of super-nodes, each of at least k nodes, with sizes and numbers of edges.

    Guarantee: a form, and no ε: nothing published tells the members of a super-node apart.

    Assumes: nobody who reads it knows all edges of a super-node but one: the counts are exact.

    Source: Hay, Miklau, Jensen, Towsley & Weis 2008; Campan & Truta 2008 (labels by hierarchies); Zheleva & Getoor 2007
    (edges between groups by kind: cluster-edge anonymization).

    >>> SuperNodes(k=10).k
    10
    """

    name: ClassVar[str] = "super-nodes"

    k: int
    columns: tuple[str, ...] = ()
    levels: Mapping[str, int] = field(default_factory=dict)
    by_kind: bool = False

    def __post_init__(self) -> None:
        GroupNodes(self.k)

    @property
    def apart(self) -> bool:
        """Whether edges of each kind are read apart."""
        return self.by_kind

    def plan(self, schema: Schema) -> Plan:
        unit_of(schema)
        labels, kinds = NodeLabels.of(schema, self.columns, self.levels), self._kinds(schema)
        steps = (GroupNodes(self.k, self.columns, kinds),)

        def draw(graph: Graph, coins: Coins) -> SuperGraph:  # noqa: ARG001 - no chance is needed
            groups = groups_of(graph, labels.classes(graph), self.k)
            return super_graph(graph, groups, labels.texts(graph), kinds)

        def examine(graph: Graph) -> None:
            require_crowds(labels.classes(graph), self.k)

        return Plan(
            self.name, steps, fold(steps, schema.unit), {}, draw, self.k, settings={"k": self.k}, examine=examine
        )

    def _kinds(self, schema: Schema) -> tuple[str, ...]:
        kinds = relations_of(schema).kinds if self.by_kind else ()
        if self.by_kind and not kinds:
            raise InvalidParameter(
                "by_kind needs the kinds that are published: list them as kinds: under edges:, beside kind:."
            )
        return kinds


@dataclass(frozen=True, kw_only=True)
class SuperNodesCheck(TwoTablesCheck):
    """Super-nodes of at least k nodes, with no more edges than pairs."""

    def columns(self, statement: Statement) -> tuple[str, ...]:
        return statement.basis.need(GroupNodes).columns

    def head(self, statement: Statement) -> tuple[tuple[str, ...], tuple[str, ...]]:
        kinds = statement.basis.need(GroupNodes).kinds
        nodes, edges = self.heads
        return (*nodes, *(INSIDE_OF_KIND + kind for kind in kinds)), (*edges, *(OF_KIND + kind for kind in kinds))

    def contradiction(self, statement: Statement) -> Problem | None:
        kinds, read = statement.basis.need(GroupNodes).kinds, _read(statement)
        if kinds and (not isinstance(read, Relate) or read.kinds != kinds):
            return Problem("the kinds that are counted are not those that were read apart")
        if isinstance(read, Relate) and not kinds:
            return Problem("edges were read apart by kinds, and no kind is counted")
        return super().contradiction(statement)

    def shape(self, statement: Statement, output: TwoTables) -> Problem | None:
        sizes, inside = output.nodes[SIZE].to_pylist(), output.nodes[INSIDE].to_pylist()
        if any(size < statement.basis.need(GroupNodes).k for size in sizes):
            return Problem("some super-node has fewer nodes than the certificate says")
        if any(not 0 <= edges <= size * (size - 1) // 2 for size, edges in zip(sizes, inside, strict=True)):
            return Problem("some super-node has more edges than pairs of nodes")
        between = zip(output.ends.tolist(), output.edges[COUNT].to_pylist(), strict=True)
        if any(not 0 < edges <= sizes[low] * sizes[high] for (low, high), edges in between):
            return Problem("between some super-nodes there are more edges than pairs of nodes")
        return _kinds_problem(statement, output)


def _read(statement: Statement) -> Connect:
    """Return the step by which edges were read."""
    return next(step for step in statement.basis.steps if isinstance(step, Connect))


def _kinds_problem(statement: Statement, output: TwoTables) -> Problem | None:
    """Return a problem if some kind has more edges than connected pairs, or if all together have fewer; else None."""
    kinds, ways = statement.basis.need(GroupNodes).kinds, 2 if _read(statement).directed else 1
    for table, total, name in ((output.nodes, INSIDE, INSIDE_OF_KIND), (output.edges, COUNT, OF_KIND)):
        columns = [table[name + kind].to_pylist() for kind in kinds]
        for pairs, *counts in zip(table[total].to_pylist(), *columns, strict=True):
            if counts and (min(counts) < 0 or max(counts) > ways * pairs or sum(counts) < pairs):
                return Problem("the edges of the kinds are not those of the connected pairs")
    return None


class SuperNodesPicture(Picture):
    """Super-nodes, joined where there are edges between them."""

    evidence: Mapping[str, str] | None = {
        "super-nodes": "Super-nodes",
        "smallest super-node": "Nodes of the smallest",
        "largest super-node": "Nodes of the largest",
    }

    def description(self, statement: Statement) -> Description:
        k = statement.basis.need(GroupNodes).k
        full = f"Super-nodes of at least {k} nodes, with the exact numbers of edges inside and between them."
        return Description("Super-nodes", f"{full} No node is published.", f"a super-node of {k} or more")

    def draw(self, statement: Statement, output: SuperGraph) -> Markup | None:
        return graph_figure(Graph.of(len(output), output.ends), "Super-nodes, joined where edges are", exact=True)


METHOD = SuperNodes
CHECK = SuperNodesCheck(
    order=(one(Connect, Relate), one(GroupNodes)),
    claims=(GroupedNodes,),
    output=SuperGraph,
    heads=((NODE, SIZE, INSIDE), (FROM, TO, COUNT)),
)
PICTURE = SuperNodesPicture()
