"""Reading: nodes and edges become a graph, or are refused before anything is charged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.core.graph import Ends, Graph, arc_keys, arcs, keys_of, simple
from incrowd.core.nearest import IdIndex
from incrowd.core.table import DEFAULTS, Engine, Opened
from incrowd.engines.columns import require
from incrowd.engines.local.views import Consenting
from incrowd.engines.readers.graphml import ENDING, read_graphml
from incrowd.errors import InvalidParameter, SourceInvalid
from incrowd.methods.graphs.shared.steps import ADD, DROP, REFUSE, Connect, Relate
from incrowd.workflows.consent.place import person_column
from incrowd.workflows.consent.snapshot import ConsentSnapshot
from incrowd.workflows.policy.columns import GraphPlace, Place
from incrowd.workflows.policy.policy import Policy

_ROWS = 2**21
"""About the number of edges held as text at once."""
_FEW_NUMBERS, _SPARSE = 2**20, 8  # a table of places for numbers up to the first, or so many times the nodes
_TENS = 10 ** np.arange(1, 19, dtype=np.int64)
_SHORT = 8  # places in `_TENS`: texts of larger numbers may have fewer characters than digits, as 0x7fffffffffffffff


@dataclass(frozen=True, eq=False)
class GraphRows:
    """The two sources of a graph, opened."""

    nodes: Opened
    edges: Opened

    def admitting(self, admission: ConsentSnapshot | None, policy: Policy) -> GraphRows:
        """Return the nodes of people who consented, and the edges between them; nothing else is read."""
        if admission is None:
            return self
        people = admission.by(person_column(policy))
        return GraphRows(Consenting(self.nodes, people), Consenting(self.edges, people, graph_place(policy).ends))


def graph_place(policy: Policy) -> GraphPlace:
    """Return the graph of a policy, or refuse one of a table."""
    if policy.graph is None:
        raise InvalidParameter("this policy is of a table: write nodes: and edges: into it, or use incrowd release.")
    return policy.graph


def open_graph(policy: Policy, engine: Engine) -> GraphRows:
    """Open nodes and edges; every declared column must be there."""
    place = graph_place(policy)
    edges = _opened(place.edges, engine, 1)
    require(edges.names, place.edge_columns)
    if place.connect.unknown == ADD:
        return GraphRows(engine.open(_named_nodes(edges, place), DEFAULTS), edges)
    nodes = _opened(place.nodes, engine, 0)
    require(nodes.names, policy.schema.names)
    return GraphRows(nodes, edges)


def _named_nodes(edges: Opened, place: GraphPlace) -> pa.Table:
    """Return the nodes that edges of the kinds that count name, each once, in the order of their ids."""
    names = pa.array([], pa.string())
    for rows in _counting_edges(edges, place):
        ends = [_text(rows.column(name)).drop_null() for name in place.ends]
        names = pa.concat_arrays([names, *ends]).unique()
    return pa.table({place.id: names.take(pc.sort_indices(names))})


@dataclass(frozen=True)
class UnknownNodes:
    """How many edges name a node that is not listed, and some of these ids with the nearest that are."""

    edges: int
    refused: bool = False
    """Whether a release is refused for them; else they are dropped."""
    nearest: tuple[tuple[str, tuple[str, ...]], ...] = field(default=(), repr=False)
    """Values of the rows: for the data holder's terminal, never for logs."""

    @property
    def outcome(self) -> str:
        """What becomes of them."""
        return "a release is refused" if self.refused else "a release drops them"


def unknown_nodes(policy: Policy, rows: GraphRows, most: int = 5) -> UnknownNodes:
    """Count the edges that name a node that is not listed; for the data holder alone."""
    place = graph_place(policy)
    ids = _text(_table(rows.nodes, (place.id,)).column(place.id))
    number, names = 0, dict[str, None]()
    for edges in _counting_edges(rows.edges, place):
        ends = [_text(edges.column(name)) for name in place.ends]
        unknown = [pc.invert(pc.is_in(column, value_set=ids)) for column in ends]
        number += pc.sum(pc.or_(*unknown)).as_py() or 0
        for column, mask in zip(ends, unknown, strict=True):
            if len(names) < most:
                names |= dict.fromkeys(column.filter(mask).drop_null().unique()[:most].to_pylist())
    listed = IdIndex.of(ids.drop_null().to_pylist() if names else ())
    near = tuple((name, listed.nearest(name)) for name in list(names)[:most])
    return UnknownNodes(number, place.connect.unknown == REFUSE, near)


def dropping_unknown(policy: Policy) -> Policy:
    """Return a policy that drops edges to nodes that are not listed, for a look at the others."""
    place = graph_place(policy)
    if place.connect.unknown != REFUSE:
        return policy
    return replace(policy, graph=replace(place, connect=replace(place.connect, unknown=DROP)))


def withheld_edges(policy: Policy, rows: GraphRows) -> Ends:
    """Return the edges of kinds that a policy does not publish; each pair once."""
    place = graph_place(policy)
    if place.kind is None or not place.connect.kinds:
        return np.zeros((0, 2), np.int64)
    ids = _text(_table(rows.nodes, (place.id,)).column(place.id))
    nodes, declared, pairs = NodeIds(ids), pa.array(place.connect.kinds, pa.string()), [np.zeros((0, 2), np.int64)]
    for edges in _stretches(rows.edges, place.edge_columns):
        others = edges.filter(pc.invert(pc.is_in(_text(edges.column(place.kind)), value_set=declared)))
        ends = np.stack([nodes.places(_text(others.column(name))) for name in place.ends], axis=1)
        pairs.append(ends[(ends >= 0).all(axis=1) & (ends[:, 0] != ends[:, 1])].astype(np.int64))
    return simple(np.concatenate(pairs), len(ids))


def _opened(place: Place, engine: Engine, part: int) -> Opened:
    address, options = place
    if address is None:
        raise InvalidParameter("nodes and edges need a source each.")
    if address.endswith(ENDING):
        return engine.open(read_graphml(Path(address))[part], DEFAULTS)
    return engine.open(address, options)


class GraphReader:
    """Reads nodes at once, and edges as their rows come: in the pass that checks them, or in one of their own."""

    def __init__(self, policy: Policy, nodes: Opened) -> None:
        self._place = graph_place(policy)
        self.columns = self._place.edge_columns
        """The columns of edges to read."""
        self._nodes = _table(nodes, policy.schema.names)
        self._ids = _text(self._nodes.column(self._place.id))
        self._places = NodeIds(self._ids)
        self._codes: dict[str | None, int] = {}
        self._held: list[pa.RecordBatch] = []
        self._pairs, self._kinds = [np.zeros((0, 2), np.int32)], [np.zeros(0, np.int32)]

    def add(self, batch: pa.RecordBatch) -> None:
        """Take some rows of edges; ids are looked up some millions at a time, since those of all nodes are hashed."""
        self._held.append(pa.record_batch([_text(batch.column(name)) for name in self.columns], list(self.columns)))
        if sum(map(len, self._held)) >= _ROWS:
            self._look_up()

    def graph(self) -> Graph:
        """Return the graph, or refuse it: the message names the broken rule and the number of rows, never a value."""
        if self._held:
            self._look_up()
        ids, rules = self._ids, self._place.connect
        if ids.null_count or len(ids.unique()) < len(ids):
            raise SourceInvalid("some nodes have no id, or share one: give every node an id of its own.")
        ends, layers = connected(np.concatenate(self._pairs), np.concatenate(self._kinds), rules, len(ids))
        return Graph(ids, ends, self._nodes, layers)

    def _look_up(self) -> None:
        edges = _counting(pa.Table.from_batches(self._held), self._place)
        self._held = []
        self._pairs.append(
            np.stack([self._places.places(_text(edges.column(name))) for name in self._place.ends], axis=1)
        )
        self._kinds.append(_codes(edges, self._place, self._codes))


def read_graph(policy: Policy, rows: GraphRows) -> Graph:
    """Return the graph of rows that are read for it alone, or refuse it."""
    reader = GraphReader(policy, rows.nodes)
    for batch in rows.edges.batches(reader.columns):
        reader.add(batch)
    return reader.graph()


def _counting_edges(source: Opened, place: GraphPlace) -> Iterator[pa.Table]:
    """Yield the edges of the kinds that count, some millions of rows at a time."""
    return (_counting(rows, place) for rows in _stretches(source, place.edge_columns))


def _counting(rows: pa.Table, place: GraphPlace) -> pa.Table:
    """Return the edges of the kinds that count."""
    if place.kind is None or not place.connect.kinds:
        return rows
    return rows.filter(pc.is_in(_text(rows.column(place.kind)), value_set=pa.array(place.connect.kinds, pa.string())))


def _stretches(source: Opened, names: tuple[str, ...]) -> Iterator[pa.Table]:
    """Yield the rows some millions at a time: the ids of all nodes are looked up once each time."""
    held: list[pa.RecordBatch] = []
    for batch in source.batches(names):
        held.append(batch)
        if sum(map(len, held)) >= _ROWS:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


def _layers(pairs: Ends, kinds: Any, rules: Connect, size: int) -> tuple[Ends, ...]:
    """Return the edges of each declared kind, each once; all in one layer where no kind is declared."""
    made = arcs if rules.directed else simple
    if not rules.kinds:
        return (made(pairs, size),)
    return tuple(made(pairs[kinds == code], size) for code in range(len(rules.kinds)))


def connected(pairs: Ends, kinds: Any, rules: Connect, size: int) -> tuple[Ends, tuple[Ends, ...]]:
    """Return the edges that stay by the rules, and those of each declared kind, or refuse them."""
    unknown = (pairs[:, 0] < 0) | (pairs[:, 1] < 0)
    _require(unknown, rules.unknown, "name a node that is not among the nodes", "unknown")
    pairs, kinds = _others(unknown, pairs, kinds)
    loops = pairs[:, 0] == pairs[:, 1]
    _require(loops, rules.loops, "join a node with itself", "loops")
    pairs, kinds = _others(loops, pairs, kinds)
    ends = simple(pairs, size)
    if rules.doubles != DROP and len(ends) < len(pairs):
        keys = (arc_keys if rules.directed else keys_of)(pairs, size)
        _require(_again(keys, kinds), rules.doubles, "stand more than once", "doubles")
    return ends, _layers(pairs, kinds, rules, size) if isinstance(rules, Relate) else ()


def _others(odd: Any, pairs: Ends, kinds: Any) -> tuple[Ends, Any]:
    return (pairs[~odd], kinds[~odd]) if odd.any() else (pairs, kinds)


def _again(keys: Any, kinds: Any) -> Any:
    """Return where, in order, an edge of the same kind as the one before has the same ends."""
    order = np.lexsort((keys, kinds))
    return (np.diff(keys[order]) == 0) & (np.diff(kinds[order]) == 0)


def _require(odd: Any, rule: str, what: str, key: str) -> None:
    if rule != DROP and bool(odd.any()):
        raise SourceInvalid(
            f"{int(odd.sum()):,} edges {what}. Correct them, or write {key}: drop under edges: to drop them."
        )


def _table(source: Opened, names: tuple[str, ...]) -> pa.Table:
    batches = list(source.batches(names))
    return pa.Table.from_batches(batches) if batches else pa.table({name: pa.array([], pa.string()) for name in names})


def _text(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    whole = pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole
    plain = whole.dictionary_decode() if pa.types.is_dictionary(whole.type) else whole
    return plain.cast(pa.string())


class NodeIds:
    """The ids of all nodes, by which places of nodes are found; ids that are whole numbers are found as such.

    >>> NodeIds(pa.array(["7", "0", "12"])).places(pa.array(["12", "012", "7", "x", None])).tolist()
    [2, -1, 0, -1, -1]
    >>> NodeIds(pa.array(["7", "0", "12"])).places(pa.array(["12", "012", "7"])).tolist()
    [2, -1, 0]
    """

    def __init__(self, ids: pa.Array) -> None:
        self._ids = ids
        numbers = _numbers(ids)
        self._table: NDArray[np.int32] | None = None
        if (
            numbers is not None
            and numbers.max(initial=0) < max(_FEW_NUMBERS, _SPARSE * len(ids))
            and (numbers >= 0).all()
        ):
            self._table = np.full(int(numbers.max(initial=0)) + 2, -1, np.int32)
            self._table[numbers] = np.arange(len(ids), dtype=np.int32)

    def places(self, values: pa.Array) -> NDArray[np.int32]:
        """Return the place of each node that is named, −1 where there is none."""
        numbers = None if self._table is None else _numbers(values)
        if self._table is None or numbers is None:
            places: NDArray[np.int32] = (
                pc.index_in(values, value_set=self._ids).fill_null(-1).to_numpy(zero_copy_only=False)
            )
            return places
        last = np.uint64(len(self._table) - 1)  # no node has it; as numbers without a sign, those below zero are large
        return self._table[np.minimum(numbers.view(np.uint64), last).view(np.int64)]


def _numbers(texts: pa.Array) -> NDArray[np.int64] | None:
    """Return whole numbers, −1 where one is not written as it should be; None where texts are no whole numbers."""
    if texts.null_count:
        return None
    try:
        numbers: NDArray[np.int64] = pc.cast(texts, pa.int64()).to_numpy()
    except pa.ArrowInvalid:
        return None
    lengths = pc.binary_length(texts).to_numpy()
    if numbers.max(initial=0) < _TENS[_SHORT]:  # no text is shorter than its number, so that sums distinguish them
        digits = len(numbers) + sum(np.count_nonzero(numbers >= ten) for ten in _TENS[:_SHORT])
        if lengths.sum(dtype=np.int64) == digits:
            return numbers
    return np.where(np.searchsorted(_TENS, numbers, "right") + 1 == lengths, numbers, -1)


def _codes(edges: pa.Table, place: GraphPlace, codes: dict[str | None, int]) -> Any:
    """Return the kind of each edge: its place among those declared, or else among those met so far."""
    if place.kind is None:
        return np.zeros(edges.num_rows, np.int32)
    coded = _text(edges.column(place.kind)).dictionary_encode()
    declared = {name: code for code, name in enumerate(place.connect.kinds)}
    names = coded.dictionary.to_pylist()
    numbers = [declared[name] if declared else codes.setdefault(name, len(codes)) for name in names]
    lost = codes.setdefault(None, len(codes)) if coded.indices.null_count else 0
    return np.array([*numbers, lost], np.int32)[coded.indices.fill_null(len(numbers)).to_numpy(zero_copy_only=False)]
