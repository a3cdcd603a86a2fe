"""Published: a release of a graph as others have it, and the origin of its nodes, which only the data holder knows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.attacks.graphs import GraphTrial, Links
from incrowd.core.certificate import Certificate
from incrowd.core.graph import Graph, keys_of, simple
from incrowd.errors import InvalidParameter
from incrowd.methods.graphs.shared.outputs import (
    COUNT,
    INSIDE,
    INSIDE_OF_KIND,
    OF_KIND,
    SIZE,
    GraphNumbers,
    PublishedGraph,
    SuperGraph,
    SyntheticGraph,
)
from incrowd.verifier.files import placed
from incrowd.verifier.judge import statement_of
from incrowd.workflows.certificates import read_certificate
from incrowd.workflows.graph.release import ORIGIN
from incrowd.workflows.policy.internal import internal_folder
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.registry import check_of

Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class HeldRelease:
    """A release with its certificate, and the origin of each published node; None where nodes have no origin."""

    certificate: Certificate
    output: Any
    origin: Places | None

    @classmethod
    def read(cls, folder: Path, policy: Policy) -> HeldRelease:
        """Read a release of a policy's graph; the origin of its nodes is in the internal part."""
        from pyarrow import parquet as pq

        certificate = read_certificate(folder)
        if certificate.policy_hash != policy.hash:
            raise InvalidParameter("this is not the policy that the release was made under.")
        where = folder if folder.is_dir() else folder.parent
        files = placed(certificate, where, None)
        output = check_of(certificate.method.name).reopen(statement_of(certificate), files)
        file = internal_folder(policy, certificate.id) / ORIGIN
        return cls(certificate, output, pq.read_table(file)["place"].to_numpy() if file.is_file() else None)

    @property
    def drawable(self) -> bool:
        """Whether a synthetic graph was published, or degrees from which a graph can be drawn."""
        if isinstance(self.output, GraphNumbers):
            return list(self.output.schema.names) == ["degree", "count"]
        return isinstance(self.output, SyntheticGraph)

    def trial(self, original: Graph, seed: int = 0) -> GraphTrial:
        """Return the trial of an attacker who knows the graph with names, nearly as it is.

        Where no graph was published, one is drawn that fits the published numbers: inside super-nodes, or by the
        degrees.  Where nodes have no origin, each original node gets a random place, so that
        a match is one by chance.
        """
        chance = np.random.default_rng(seed)
        if isinstance(self.output, PublishedGraph) and self.origin is not None:
            truth = np.empty(original.size, np.int64)
            truth[self.origin] = np.arange(original.size)
            return GraphTrial(original, self.output.graph, truth, np.zeros(original.size, np.int64), seed=seed)
        if isinstance(self.output, SuperGraph) and self.origin is not None:
            world, crowd = world_of(self.output, chance)
            order = np.lexsort((chance.random(original.size), self.origin))
            truth = np.empty(original.size, np.int64)
            truth[order] = np.arange(original.size)  # members stand at the places of their super-node, in any order
            return GraphTrial(original, world, truth, crowd, seed=seed, links=group_links(self.output, crowd))
        if self.drawable:
            own = isinstance(self.output, SyntheticGraph)
            world = self.output.graph if own else by_degrees(self.output, original.size, chance)
            return GraphTrial(
                original, world, chance.permutation(original.size), np.zeros(original.size, np.int64), seed=seed
            )
        raise InvalidParameter(
            "this release cannot be matched with the graph: only numbers were published, or the internal part, which "
            "holds the origin of each node, is missing. Restore .incrowd/internal beside the policy."
        )


def group_links(output: SuperGraph, crowd: Places) -> Links:
    """Return for pairs of nodes the published shares of connected pairs between their super-nodes, kind by kind."""
    sizes = output.nodes[SIZE].to_numpy().astype(np.float64)
    inside = np.stack([output.nodes[name].to_numpy() for name in _counted(output.nodes, INSIDE)], axis=1)
    between = np.stack([output.edges[name].to_numpy() for name in _counted(output.edges, COUNT)], axis=1)
    keys = keys_of(output.ends, len(sizes)) if len(output.ends) else np.zeros(0, np.int64)

    def links(pairs: Places) -> NDArray[np.float64]:
        groups = crowd[pairs]
        own = groups[:, 0] == groups[:, 1]
        most = sizes[groups].prod(axis=1)
        possible = np.where(own, most - sizes[groups[:, 0]], 2 * most) / 2
        pair_keys = keys_of(groups, len(sizes))
        places = np.minimum(np.searchsorted(keys, pair_keys), max(0, len(keys) - 1))
        met = (keys[places] == pair_keys) & ~own if len(keys) else np.zeros(len(pairs), np.bool_)
        counts = np.zeros((len(pairs), inside.shape[1]))
        counts[own], counts[met] = inside[groups[own, 0]], between[places[met]]
        shares: NDArray[np.float64] = counts / np.maximum(1.0, possible)[:, None]
        return shares

    return links


def _counted(table: pa.Table, total: str) -> list[str]:
    """Return the columns that count edges: of all kinds, and of each."""
    return [name for name in table.column_names if name == total or name.startswith((OF_KIND, INSIDE_OF_KIND))]


def world_of(output: SuperGraph, chance: np.random.Generator) -> tuple[Graph, Places]:
    """Draw a graph that has the published counts, and return it with the super-node of each node."""
    sizes = output.nodes[SIZE].to_numpy()
    starts = np.append(0, np.cumsum(sizes))
    pairs = [np.zeros((0, 2), np.int64)]
    for place, (size, edges) in enumerate(zip(sizes.tolist(), output.nodes[INSIDE].to_pylist(), strict=True)):
        low, high = np.triu_indices(size, 1)
        taken = chance.permutation(len(low))[:edges]
        pairs.append(np.stack([low[taken], high[taken]], axis=1) + starts[place])
    for (one, other), edges in zip(output.ends.tolist(), output.edges[COUNT].to_pylist(), strict=True):
        taken = chance.permutation(int(sizes[one] * sizes[other]))[:edges]
        pairs.append(np.stack([taken // sizes[other] + starts[one], taken % sizes[other] + starts[other]], axis=1))
    number = int(starts[-1])
    return Graph.of(number, simple(np.concatenate(pairs), number)), np.repeat(np.arange(len(sizes)), sizes)


def by_degrees(output: GraphNumbers, size: int, chance: np.random.Generator) -> Graph:
    """Draw a graph with about the published degrees: ends are joined at random; loops and doubles are dropped."""
    counts = np.maximum(0, output.table["count"].to_numpy())
    degrees = np.repeat(np.arange(len(counts)), counts)[:size]
    ends = chance.permutation(np.repeat(np.arange(len(degrees)), degrees))
    pairs = ends[: len(ends) // 2 * 2].reshape(-1, 2)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    return Graph.of(size, simple(pairs, size) if len(pairs) else pairs)
