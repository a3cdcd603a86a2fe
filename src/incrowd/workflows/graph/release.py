"""Release of a graph: the ten hops of every release, with two sources in place of one."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.core.graph import Graph
from incrowd.core.schema import Column, Schema
from incrowd.core.table import Engine, Table
from incrowd.core.unit import Kind, Unit
from incrowd.engines.choose import engine_of
from incrowd.engines.local.fingerprint import keyed_digest
from incrowd.engines.settings import Local, describe
from incrowd.engines.writers.sinks import Folders, check_free, staged
from incrowd.errors import InvalidParameter, Refused
from incrowd.verifier.files import CERTIFICATE
from incrowd.workflows.consent.calendar import require_day
from incrowd.workflows.consent.changes import GraphTables, node_participants, require_nobody_moved
from incrowd.workflows.consent.participants import Participants, keep_participants
from incrowd.workflows.consent.snapshot import ConsentSnapshot, admit
from incrowd.workflows.graph.reading import graph_place, open_graph, read_graph
from incrowd.workflows.policy.internal import INTERNAL, internal_folder
from incrowd.workflows.policy.ledger import find_book, open_book
from incrowd.workflows.policy.policy import Policy, PolicyLike, load_policy
from incrowd.workflows.policy.sources import DatasetBinding, FingerprintFile, MarkedSource
from incrowd.workflows.release.certify import Stated, certify, columns_of, dataset_of
from incrowd.workflows.release.differences import Earlier, earlier_releases
from incrowd.workflows.release.perform import ChargeTarget, concluding, perform
from incrowd.workflows.release.publish import Destination, PublishedRelease, Released, check_labels, write_files
from incrowd.workflows.verify.signing import private_key

ORIGIN = "nodes.parquet"
"""In the internal part: which node of the data each published one is; it never leaves."""


_NEEDED = ("scipy.optimize", "scipy.sparse.csgraph")
"""What methods of graphs import where they use it: loaded before the charge, so that what is missing costs nothing."""


@dataclass(frozen=True, eq=False)
class PreparedGraph:
    """A graph that was read and found fit, the ledger and what will bind both, and a commitment to the rows."""

    graph: Graph
    ledger: Ledger
    bond: DatasetBinding
    key: bytes
    commitment: str
    sources: tuple[str | None, ...]
    participants: Participants | None = None


def prepare_graph(
    policy: Policy, engine: Engine, now: ConsentSnapshot | None = None, earlier: Sequence[Earlier] = ()
) -> PreparedGraph:
    """Open, mark and read both sources, and refuse what cannot be released, before anything is charged.

    Of people who did not consent nothing is read but whose their nodes and edges are.
    """
    if policy.gate is not None and (now is None or not now.gate.settled):
        raise Refused("this policy names a purpose, and who consented to it was not read: nothing is released.")
    for module in _NEEDED:
        import_module(module)
    rows = open_graph(policy, engine)
    mark = FingerprintFile.of(policy).key()
    taking = rows.admitting(now, policy)
    read = zip((taking.nodes, taking.edges), marked_schemas(policy), strict=True)
    marks = [engine.marks(source, schema, mark) for source, schema in read]
    graph = read_graph(policy, taking)
    digests = [engine.digest(source) for source in (rows.nodes, rows.edges)]
    content = hashlib.sha256(b"".join(digests)).digest()
    nodes = Table(policy.schema, rows.nodes, engine)
    require_nobody_moved(policy, earlier, GraphTables(nodes, content), now)
    most = getattr(policy.method, "most_nodes", None)
    if most is not None and graph.size > most:
        raise InvalidParameter(
            f"this method takes at most {most:,} nodes: every pair of them has an answer of its own."
        )
    ledger = open_book(policy)
    opened = zip((rows.nodes, rows.edges), marks, strict=True)
    bond = DatasetBinding.of(policy, ledger, tuple(MarkedSource(source.address, marked) for source, marked in opened))
    if policy.plan.examine is not None:
        policy.plan.examine(graph)
    key = secrets.token_bytes(32)
    commitment, sources = keyed_digest(content, key), (rows.nodes.address, rows.edges.address)
    return PreparedGraph(graph, ledger, bond, key, commitment, sources, node_participants(policy, nodes, now))


def marked_schemas(policy: Policy) -> tuple[Schema, Schema]:
    """Return by what nodes and edges are recognized under another name: nodes as people, by their ids, edges by ends.

    Attributes alone would not do: nodes have few, so that any two graphs with the same ones would look alike.
    """
    place = graph_place(policy)
    nodes = Schema(policy.schema.columns, Unit(Kind.PERSON, column=place.id))
    return nodes, Schema(tuple(Column(name) for name in place.edge_columns))


def release_graph(policy: PolicyLike, destination: Destination) -> PublishedRelease:
    """Release a graph into a folder: data, report and certificate appear together, or not at all."""
    read = load_policy(policy)
    if not isinstance(read.engine, Local):
        raise InvalidParameter("graphs are worked on here: leave engine: out, or write engine: local.")
    admission = admit(read)
    earlier = earlier_releases(read, find_book(read), anyway=admission is None)
    require_day(admission, earlier)
    plan = read.plan.gated(None if admission is None else admission.gate)
    stated = Stated.of(plan, read)
    id_ = stated.fresh_id()
    folders = Folders(destination.folder, internal_folder(read, id_))
    _check(destination, folders, read)
    there = destination.folder / CERTIFICATE
    with ExitStack() as paid:
        with engine_of(read.engine) as engine:
            ready = prepare_graph(read, engine, admission, earlier)
            payer = ChargeTarget(read.name, id_, bonds=(ready.bond,))
            paid.enter_context(concluding(ready.ledger, plan, payer, there.exists))
            performed = perform(plan, ready.graph, ready.ledger, payer)
        columns = columns_of(read.schema, performed.output.schema.names)
        certificate = certify(id_, stated, performed, dataset_of(read, ready.commitment), columns)
        with staged(folders) as stage:
            certificate = write_files(certificate, performed.output, stage.public, destination)
            _write_internal(stage.internal or stage.public, (read, ready), performed.output, destination.folder, id_)
            keep_participants(stage.internal, ready.participants)
            ready.ledger.conclude(performed.entry, certificate.digest())
    shown = Released(performed.output, certificate)
    return PublishedRelease(destination.folder, folders.internal or destination.folder, shown)


def _check(destination: Destination, folders: Folders, policy: Policy) -> None:
    if destination.table is not None:
        raise InvalidParameter("a graph is two tables, which do not go into one of a database: leave the table out.")
    check_free(folders)
    check_labels(destination.form, policy.schema)
    if destination.key is not None:
        private_key(destination.key)


def _write_internal(folder: Path, found: tuple[Policy, PreparedGraph], output: Any, published: Path, id_: str) -> None:
    """Keep apart what only the data holder may know: where rows are, keys, and who each published node is."""
    from pyarrow import parquet as pq

    policy, ready = found
    inside = {
        "certificate": id_,
        "source": list(ready.sources),
        "worked on": describe(policy.engine),
        "commitment key": ready.key.hex(),
        "published": str(published.resolve()),
        "k": policy.plan.smallest_class,
        "policy": policy.section.model_dump(mode="json", exclude_none=True),
    }
    (folder / INTERNAL).write_text(json.dumps(inside, indent=1, ensure_ascii=False), encoding="utf-8")
    origin = getattr(output, "origin", None)
    if origin is not None:
        pq.write_table(pa.table({"place": origin}), folder / ORIGIN)
