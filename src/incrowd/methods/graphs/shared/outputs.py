"""What leaves of a graph: nodes and edges in two tables, super-nodes and super-edges, or a table of numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.core.cells import Cells
from incrowd.core.graph import Ends, Graph, keys_of
from incrowd.core.recoding import Recoding
from incrowd.core.schema import Schema
from incrowd.errors import InvalidParameter
from incrowd.methods.shared.outcome import Outcome, Tabular

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.core.unit import Unit


NODE, FROM, TO, SIZE, INSIDE, COUNT = "node", "from", "to", "size", "edges inside", "edges"
TRIANGLES, WEDGES, CLUSTERING = "triangles", "pairs of edges", "clustering"
FARTHEST = 2**60
"""A number that lies beyond is published as this: it must fit its column."""
OWN = frozenset({NODE, FROM, TO, SIZE, INSIDE, COUNT})
"""Names that no released node column may have."""
OF_KIND = "edges of kind "
INSIDE_OF_KIND = "edges inside of kind "
"""How columns begin that count the edges of one kind."""


@dataclass(frozen=True, eq=False)
class GraphTable(Tabular):
    """One of the tables of a graph."""

    form: ClassVar[str] = "part of a graph"

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
        """Return nothing: what is shown is shown by the whole."""
        return {}


@dataclass(frozen=True, eq=False)
class TwoTables(Outcome):
    """Nodes in one table and edges in another; `origin`, where known, tells the holder who each node is."""

    nodes: pa.Table
    edges: pa.Table
    origin: NDArray[np.int64] | None = field(default=None, repr=False)

    @property
    def schema(self) -> pa.Schema:
        """The names and types of the columns of nodes."""
        return self.nodes.schema

    @property
    def parts(self) -> tuple[Outcome, ...]:
        """The two tables."""
        return (GraphTable(self.nodes), GraphTable(self.edges))

    def __len__(self) -> int:
        rows: int = self.nodes.num_rows
        return rows

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Return the nodes."""
        yield from self.nodes.to_batches()

    @property
    def ends(self) -> Ends:
        """The pairs of places of nodes that stand in the table of edges."""
        return np.stack(self.numbers, axis=1) - 1

    @property
    def numbers(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The numbers of the first and of the second node of each edge, from 1 on."""
        first, second = (self.edges[name].to_numpy().astype(np.int64, copy=False) for name in (FROM, TO))
        return first, second

    @property
    def degrees(self) -> NDArray[np.int64]:
        """How many edges each node has."""
        first, second = (np.bincount(ends, minlength=len(self) + 1) for ends in self.numbers)
        return (first + second)[1:]


@dataclass(frozen=True, eq=False)
class PublishedGraph(TwoTables):
    """Nodes under new numbers in an order that tells nothing, and the edges between them."""

    form: ClassVar[str] = "graph"

    @classmethod
    def of(cls, graph: Graph, labels: dict[str, pa.Array], coins: Coins) -> PublishedGraph:
        """Give the nodes new numbers by coins, and put labels beside them."""
        order = shuffled(graph.size, coins)
        place = np.empty(graph.size, np.int32)
        place[order] = np.arange(graph.size, dtype=np.int32)
        keys = keys_of(place[graph.ends], graph.size)  # of as many different pairs as there were
        keys.sort()
        first, second = np.divmod(keys, max(1, graph.size))
        shuffled_labels = {name: column.take(pa.array(order)) for name, column in labels.items()}
        nodes = pa.table({NODE: np.arange(1, graph.size + 1), **shuffled_labels})
        return cls(nodes, pa.table({FROM: first + 1, TO: second + 1}), order)

    @property
    def graph(self) -> Graph:
        """The published graph."""
        return Graph.of(len(self), self.ends)

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
        """Return how large the graph is, and its rarest degree."""
        degrees = np.unique(self.degrees, return_counts=True)[1]
        return {
            "nodes": len(self),
            "edges": self.edges.num_rows,
            "nodes of the rarest degree": int(degrees.min(initial=len(self))),
        }

    def opinion(self, unit: Unit, *, private: bool) -> dict[str, str]:
        return opinion_of_graph(private=private)


@dataclass(frozen=True, eq=False)
class SyntheticGraph(PublishedGraph):
    """Nodes and edges that were drawn: no node of it is anyone's."""

    form: ClassVar[str] = "synthetic graph"

    @classmethod
    def renumbered(cls, graph: Graph, coins: Coins) -> SyntheticGraph:
        """Give the nodes new numbers by coins; whose they were means nothing."""
        made = PublishedGraph.of(graph, {}, coins)
        return cls(made.nodes, made.edges)

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
        """Return how large the graph is."""
        return {"nodes": len(self), "edges": self.edges.num_rows}

    def opinion(self, unit: Unit, *, private: bool) -> dict[str, str]:
        nobody = "no node stands for a person, and no edge is of the data but by chance"
        return opinion_of_graph(private=True) | {"singling out": nobody, "linkability": nobody}


@dataclass(frozen=True, eq=False)
class SuperGraph(TwoTables):
    """Super-nodes with their sizes and inner edges, and how many edges there are between any two."""

    form: ClassVar[str] = "super-graph"

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
        """Return how many super-nodes there are, how small and how large."""
        sizes = self.nodes[SIZE].to_numpy()
        return {
            "super-nodes": len(self),
            "smallest super-node": int(sizes.min()) if len(sizes) else 0,
            "largest super-node": int(sizes.max(initial=0)),
        }

    def opinion(self, unit: Unit, *, private: bool) -> dict[str, str]:
        return opinion_of_graph(private=private)


@dataclass(frozen=True, eq=False)
class GraphNumbers(Tabular):
    """Numbers of a graph with noise."""

    form: ClassVar[str] = "numbers of a graph"

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
        """Return how many numbers were published."""
        return {"numbers": len(self)}

    def opinion(self, unit: Unit, *, private: bool) -> dict[str, str]:
        return {
            "singling out": "no node and no edge is published, only numbers of them",
            "linkability": "no node and no edge is published: there is nothing to link",
            "inference": "bounded by the claims above, for every edge, whatever the attacker knows",
        }


def opinion_of_graph(*, private: bool) -> dict[str, str]:
    """Return the three tests of Opinion 05/2014 for a graph that is published."""
    if private:
        bounded = "bounded by the claims above, whatever the attacker knows of other edges"
        return {
            "singling out": "nodes are published, and who they are may be known",
            "linkability": "see inference",
        } | {"inference": bounded}
    return {
        "singling out": "not excluded: someone who knows more of a neighborhood than is counted here may find a node",
        "linkability": "not excluded: two releases of one graph can be laid on each other",
        "inference": "not bounded: this release has no epsilon",
    }


def shuffled(size: int, coins: Coins) -> NDArray[np.int64]:
    """Return the places of nodes in random order, every order as likely; equal draws are drawn again."""
    while True:
        keys = coins.below(2**62, size)
        order = np.argsort(keys, kind="stable")
        ordered = keys[order]
        if not np.any(ordered[1:] == ordered[:-1]):
            return order


@dataclass(frozen=True)
class NodeLabels:
    """The columns of nodes that are published, each at a level whose labels are declared; perhaps none."""

    recodings: tuple[Recoding, ...]

    @classmethod
    def of(cls, schema: Schema, columns: Sequence[str], levels: Mapping[str, int]) -> NodeLabels:
        """Return the labels of some columns, or refuse what cannot be listed from the declaration."""
        if extra := [name for name in levels if name not in columns]:
            raise InvalidParameter(f"a level is given for {extra[0]!r}, which is not among columns.")
        recodings = Cells.of(schema, levels, columns).recodings if columns else ()
        for recoding in recodings:
            name = recoding.column.name
            if recoding.classes is None or recoding.column.may_drop:
                raise InvalidParameter(
                    f"every node needs a declared label in {name!r}: list its categories or choose a higher level, and "
                    "let what is missing or outside be a class, not dropped."
                )
            if name in OWN or name.startswith((OF_KIND, INSIDE_OF_KIND)):
                raise InvalidParameter(f"a published graph has a column {name!r} of its own: leave that one out.")
        return cls(recodings)

    def codes(self, graph: Graph) -> list[NDArray[np.int32]]:
        """Return the class of each node in each column."""
        return [recoding.codes(graph.columns.column(recoding.column.name)) for recoding in self.recodings]

    def classes(self, graph: Graph) -> NDArray[np.int64]:
        """Return for each node the number of its tuple of labels; all are 0 where nothing is published."""
        if not self.recodings:
            return np.zeros(graph.size, np.int64)
        return np.unique(np.stack(self.codes(graph), axis=1), axis=0, return_inverse=True)[1].ravel().astype(np.int64)

    def texts(self, graph: Graph) -> dict[str, pa.Array]:
        """Return the labels of each node, column by column."""
        return {
            recoding.column.name: recoding.classes.open_labels().take(pa.array(codes))  # type: ignore[union-attr]
            for recoding, codes in zip(self.recodings, self.codes(graph), strict=True)
        }


def require_crowds(classes: NDArray[np.int64], k: int) -> None:
    """Refuse nodes of which fewer than k have the same labels: before anything is charged, for the holder's eyes."""
    if len(classes) and int(np.bincount(classes).min()) < k:
        raise InvalidParameter(
            f"some labels, or all nodes together, have fewer than {k} nodes: choose a smaller k, higher levels or "
            "fewer columns."
        )
