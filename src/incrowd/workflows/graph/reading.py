"""Reading: nodes and edges become a graph, or are refused before anything is charged."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from incrowd.core.graph import Ends, Graph, keys_of, simple
from incrowd.core.table import DEFAULTS, Engine, Opened
from incrowd.engines.columns import require
from incrowd.engines.local.consenting import Consenting
from incrowd.engines.readers.graphml import ENDING, read_graphml
from incrowd.errors import InvalidParameter, SourceInvalid
from incrowd.methods.graphs.steps import DROP, Connect
from incrowd.workflows.consent.admission import Admission
from incrowd.workflows.consent.place import person_column
from incrowd.workflows.policy.graphs import GraphPlace, Place
from incrowd.workflows.policy.policy import Policy


@dataclass(frozen=True, eq=False)
class GraphRows:
    """The two sources of a graph, opened."""

    nodes: Opened
    edges: Opened

    def admitting(self, admission: Admission | None, policy: Policy) -> GraphRows:
        """Return nodes of people who were admitted, and the edges between them; what others wrote is not looked at."""
        if admission is None:
            return self
        whose = admission.by(person_column(policy))
        return GraphRows(Consenting(self.nodes, whose), Consenting(self.edges, whose, graph_place(policy).ends))


def graph_place(policy: Policy) -> GraphPlace:
    """Return the graph of a policy, or refuse one of a table."""
    if policy.graph is None:
        raise InvalidParameter("this policy is of a table: write nodes: and edges: into it, or use incrowd release.")
    return policy.graph


def open_graph(policy: Policy, engine: Engine) -> GraphRows:
    """Open nodes and edges; every declared column must be there."""
    place = graph_place(policy)
    nodes, edges = _opened(place.nodes, engine, 0), _opened(place.edges, engine, 1)
    require(nodes.names, policy.schema.names)
    require(edges.names, place.edge_columns)
    return GraphRows(nodes, edges)


def _opened(place: Place, engine: Engine, part: int) -> Opened:
    address, options = place
    if address is None:
        raise InvalidParameter("nodes and edges need a source each.")
    if address.endswith(ENDING):
        return engine.open(read_graphml(Path(address))[part], DEFAULTS)
    return engine.open(address, options)


def read_graph(policy: Policy, rows: GraphRows) -> Graph:
    """Return the graph, or refuse it with the rule that a row breaks and how many do; never with a value."""
    place = graph_place(policy)
    columns = _table(rows.nodes, policy.schema.names)
    ids = _text(columns.column(place.id))
    if ids.null_count or len(ids.unique()) < len(ids):
        raise SourceInvalid("some nodes have no id, or the id of another: every node needs one of its own.")
    edges = _table(rows.edges, place.edge_columns)
    if place.kind is not None and place.connect.kinds:
        kinds = pa.array(place.connect.kinds, pa.string())
        edges = edges.filter(pc.is_in(_text(edges.column(place.kind)), value_set=kinds))
    pairs = np.stack([_places(_text(edges.column(name)), ids) for name in place.ends], axis=1)
    kinds_of = _codes(edges, place.kind)
    return Graph(ids, _connected(pairs, kinds_of, place.connect, len(ids)), columns)


def _connected(pairs: Ends, kinds: Any, rules: Connect, size: int) -> Ends:
    """Return the pairs of nodes that are connected, by the rules."""
    unknown = (pairs < 0).any(axis=1)
    _require(unknown, rules.unknown, "name a node that is not among the nodes", "unknown")
    pairs, kinds = pairs[~unknown], kinds[~unknown]
    loops = pairs[:, 0] == pairs[:, 1]
    _require(loops, rules.loops, "join a node with itself", "loops")
    pairs, kinds = pairs[~loops], kinds[~loops]
    if rules.doubles != DROP:
        keys = pairs[:, 0] * size + pairs[:, 1] if rules.directed else keys_of(pairs, size)
        order = np.lexsort((keys, kinds))
        again = (np.diff(keys[order]) == 0) & (np.diff(kinds[order]) == 0)
        _require(again, rules.doubles, "stand more than once", "doubles")
    return simple(pairs, size) if len(pairs) else pairs


def _require(odd: Any, rule: str, what: str, key: str) -> None:
    if rule != DROP and bool(odd.any()):
        raise SourceInvalid(
            f"{int(odd.sum()):,} edges {what}. Correct them, or write {key}: drop under edges: to leave them out."
        )


def _table(source: Opened, names: tuple[str, ...]) -> pa.Table:
    batches = list(source.batches(names))
    return pa.Table.from_batches(batches) if batches else pa.table({name: pa.array([], pa.string()) for name in names})


def _text(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    whole = pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole
    plain = whole.dictionary_decode() if pa.types.is_dictionary(whole.type) else whole
    return plain.cast(pa.string())


def _places(values: pa.Array, ids: pa.Array) -> Any:
    return pc.index_in(values, value_set=ids).fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)


def _codes(edges: pa.Table, kind: str | None) -> Any:
    if kind is None:
        return np.zeros(edges.num_rows, np.int64)
    coded = _text(edges.column(kind)).dictionary_encode()
    return coded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
