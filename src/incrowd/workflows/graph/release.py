"""Release of a graph: the road of every release, with two sources in place of one."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path

import pyarrow as pa

from incrowd.core.certificate import Certificate
from incrowd.core.schema import Column, Schema
from incrowd.core.table import Engine, Table
from incrowd.core.unit import Kind, Unit
from incrowd.engines.fingerprints import keyed_digest
from incrowd.engines.local.views import KeyedRows
from incrowd.engines.settings import Local, engine_of
from incrowd.engines.writers.sinks import Folders, check_free
from incrowd.errors import InvalidParameter, Refused
from incrowd.workflows.consent.changes import GraphTables, node_participants, require_nobody_moved
from incrowd.workflows.consent.participants import Participants, keep_participants
from incrowd.workflows.consent.preconditions import require_lineage
from incrowd.workflows.consent.snapshot import admit
from incrowd.workflows.graph.reading import GraphReader, graph_place, open_graph
from incrowd.workflows.policy.internal import internal_folder
from incrowd.workflows.policy.ledger import ensure_book, find_book
from incrowd.workflows.policy.policy import Policy, PolicyLike, load_policy
from incrowd.workflows.policy.sources import DatasetBinding, FingerprintFile, MarkedSource
from incrowd.workflows.release.deliver import Destination, InFolder, PublishedRelease, check_labels, write_internal
from incrowd.workflows.release.differences import earlier_releases
from incrowd.workflows.release.keyed import once
from incrowd.workflows.release.prepare import Background, PolicyOrder
from incrowd.workflows.release.recover import require_none_hidden
from incrowd.workflows.release.run import OpenedRows, PendingRelease, run
from incrowd.workflows.verify.signing import private_key

ORIGIN = "nodes.parquet"
"""In the internal part: which node of the data each published one is; it is never released."""

_NEEDED = ("scipy.optimize", "scipy.sparse.csgraph")
"""What methods import where they use it: loaded before the charge, so that a missing one costs nothing.

A method that needs less than all of them says so itself.
"""


@dataclass(frozen=True, eq=False)
class PreparedGraph(OpenedRows):
    """A graph that can be released, with the key of its commitment and the addresses of nodes and edges."""

    key: bytes
    sources: tuple[str | None, ...]
    participants: Participants | None = None


@contextmanager
def prepared_graph(order: PolicyOrder) -> Iterator[PreparedGraph]:
    """Start the engine, and open and check nodes and edges there."""
    with engine_of(order.policy.engine) as engine:
        yield prepare_graph(order.policy, engine, order.background)


def prepare_graph(policy: Policy, engine: Engine, background: Background) -> PreparedGraph:
    """Open, fingerprint and read both sources, and refuse what cannot be released, before anything is charged.

    Of people who did not consent only the person IDs of their nodes and edges are read.
    """
    consent = background.consent
    if policy.gate is not None and (consent is None or not consent.gate.settled):
        raise Refused("this policy names a purpose, and its consent registry was not read: nothing is released.")
    for module in _NEEDED if policy.method.libraries is None else policy.method.libraries:
        import_module(module)
    rows = open_graph(policy, engine)
    fingerprint_key = FingerprintFile.of(policy).key()
    admitted = rows.admitting(consent, policy)
    of_nodes, of_edges = marked_schemas(policy)
    fingerprints = [engine.marks(admitted.nodes, of_nodes, fingerprint_key)]
    reader = GraphReader(policy, admitted.nodes)
    fingerprints.append(engine.marks(KeyedRows(admitted.edges, reader), of_edges, fingerprint_key))
    graph = reader.graph()
    digests = [engine.digest(source) for source in (rows.nodes, rows.edges)]
    content = hashlib.sha256(b"".join(digests)).digest()
    nodes = Table(policy.schema, rows.nodes, engine)
    require_nobody_moved(policy, background.earlier, GraphTables(nodes, content), consent)
    most = getattr(policy.method, "most_nodes", None)
    if most is not None and graph.size > most:
        raise InvalidParameter(f"this method takes at most {most:,} nodes: it decides about every pair of them.")
    ledger = ensure_book(policy, background.ledger)
    marked = zip((rows.nodes, rows.edges), fingerprints, strict=True)
    bond = DatasetBinding.of(
        policy, ledger, tuple(MarkedSource(source.address, fingerprint) for source, fingerprint in marked)
    )
    if policy.plan.examine is not None:
        policy.plan.examine(graph)
    key = secrets.token_bytes(32)
    commitment, addresses = keyed_digest(content, key), (rows.nodes.address, rows.edges.address)
    people = node_participants(policy, nodes, consent)
    return PreparedGraph(graph, ledger, (bond,), commitment, key, addresses, people)


def marked_schemas(policy: Policy) -> tuple[Schema, Schema]:
    """Return the schemas under which nodes and edges are fingerprinted: nodes as people, by their ids; edges by ends.

    Attributes alone would not do: nodes have few, so two graphs with the same attributes would have one fingerprint.
    """
    place = graph_place(policy)
    nodes = Schema(policy.schema.columns, Unit(Kind.PERSON, column=place.id))
    return nodes, Schema(tuple(Column(name) for name in place.edge_columns))


def release_graph(
    policy: PolicyLike, destination: Destination, *, anyway: bool = False, key: str | None = None
) -> PublishedRelease:
    """Release a graph into a folder: data, report and certificate appear together, or not at all.

    `anyway` also releases where the consent registry was never in the state of the last release.  A release that is
    tried again with the same `key` is the same release.
    """
    read = load_policy(policy)
    if not isinstance(read.engine, Local):
        raise InvalidParameter("graphs are read on this machine: leave engine: out, or write engine: local.")
    return once(read, destination, key, partial(_release, read, destination, anyway=anyway))


def _release(read: Policy, destination: Destination, digest: str | None, *, anyway: bool) -> PublishedRelease:
    ledger, consent = find_book(read), admit(read)
    if not anyway:
        require_lineage(read, ledger, consent)
    hidden = require_none_hidden(read, ledger, destination.place)
    earlier = earlier_releases(read, ledger, anyway=consent is None)
    order = PolicyOrder.of(read.plan, read, Background(ledger, consent, earlier))
    order = replace(order, target=replace(order.target, key=digest))
    accompany = partial(_accompany, order, destination.place)
    delivery = InFolder(destination, internal_folder(read, order.id), accompany)
    _check(destination, delivery.folders, read)
    published = run(order, partial(prepared_graph, order), delivery)
    return replace(published, notes=(*published.notes, *hidden))


def _check(destination: Destination, folders: Folders, policy: Policy) -> None:
    if destination.table is not None:
        raise InvalidParameter("a graph is two tables, which do not go into one of a database: leave the table out.")
    check_free(folders)
    check_labels(destination.form, policy.schema)
    if destination.key is not None:
        private_key(destination.key)


def _accompany(
    order: PolicyOrder, folder: Path, made: PendingRelease[PreparedGraph], _certificate: Certificate, stage: Folders
) -> tuple[str, ...]:
    """Write what only the data holder may know, and which node of the data each published one is."""
    from pyarrow import parquet as pq

    internal = write_internal(stage, order, folder, made.opened.key, {"source": list(made.opened.sources)})
    origin = getattr(made.output, "origin", None)
    if origin is not None:
        pq.write_table(pa.table({"place": origin}), internal / ORIGIN)
    keep_participants(internal, made.opened.participants)
    return ()
