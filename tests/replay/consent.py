"""The consent gate in front of private methods: a refuser loses nothing, and consenting loses no more than taking part.

Neighbors differ by one person's rows together with that person's own events: the person who consents is compared with
the person who is not there, and with the same rows of a person who refuses.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa

from incrowd.core.linked import LinkedTables
from incrowd.core.steps.around import ConsentGate
from incrowd.core.subjects import SubjectKey
from incrowd.core.table import Table
from incrowd.engines.local.engine import LOCAL, LocalEngine
from incrowd.engines.local.views import PseudonymFilter
from incrowd.workflows.consent.snapshot import ConsentSnapshot, taking_part_linked
from incrowd.workflows.policy.linked_tables import linked_schema, open_tables
from incrowd.workflows.policy.policy import Policy
from tests.linked import Tables, chosen, hospital, with_person
from tests.replay import linked
from tests.replay.golden import Parts
from tests.replay.neighbors import LAST, POLAR, rows_table
from tests.replay.replaying import Recording, part_of_guarantee
from tests.replay.tables import policy, published
from tests.replay.transcript import Chance
from tests.tables import Batches

GATED = (
    ("private-histogram", "people with two rows"),
    ("private-histogram", "unknown bins, seven rows"),
    ("most-common", "people with two rows"),
    ("kmeans", "people with two rows"),
)
LINKED = (("linked", "one level"), ("linked", "two levels by row ID"))
_KEY, _PERSON = SubjectKey(bytes(32)), "zz"
_GATE = ConsentGate("research", run="2026-01-01T00:00:00Z", nonce="00", mark="00")


def gated(example: Policy, rows: pa.Table, *, consents: bool) -> Table:
    """Return a table behind the gate: everybody consents, the last person only if told so."""
    unit = example.schema.unit
    assert unit.column is not None
    people = {str(name) for name in rows["id"].to_pylist()} - (set() if consents else {_PERSON})
    admitted = PseudonymFilter(example.schema[unit.column], _KEY, frozenset(map(_KEY.pseudonym, people)))
    engine: Any = LocalEngine()
    return Table(example.schema, engine.admitted(Batches(rows), admitted), engine)


def parts(method: str, name: str) -> Parts:
    """Return the largest part of its guarantee that an example lost behind a gate, by what a person decides."""
    if method == "linked":
        return linked_parts(name)
    example = policy(method, name)
    number, unit = example.schema.unit.max_rows, example.schema.unit
    table, without = rows_table([*POLAR, *[LAST] * number], number), rows_table(POLAR)
    refused, absent = (gated(example, rows, consents=False) for rows in (table, without))
    consented = gated(example, table, consents=True)
    results = {}
    for kind, first, second in (
        ("consents or is not there", absent, consented),
        ("consents or refuses", refused, consented),
        ("refuses or is not there", absent, refused),
    ):
        recording = Recording.of(example.plan, first, Chance(0), partial(published, unit=unit))
        results[kind] = part_of_guarantee(example.plan, [recording.replay(second)])
    return results


def gated_tables(policy: Policy, tables: Tables, *, consents: bool) -> LinkedTables:
    """Return linked tables behind the gate: everybody consents, the last person only if told so."""
    ids = {str(name) for name in tables["patients"]["patient"].to_pylist()} - (set() if consents else {"you"})
    consent = ConsentSnapshot(_GATE, _KEY, frozenset(map(_KEY.pseudonym, ids)))
    schema = linked_schema(policy)
    sources = open_tables(policy, chosen(policy, tables), LOCAL)
    rows = zip(schema.table_names, taking_part_linked(LOCAL, sources, policy, consent), strict=True)
    return LinkedTables(schema, tuple(Table(schema.columns_of(name), some, LOCAL) for name, some in rows))


def linked_parts(name: str) -> Parts:
    """Return the same of linked tables, for somebody with more rows than are read."""
    own, base = linked.policy(name), hospital(8)
    there, results = with_person(base, *linked.YOU[-1]), {}
    refused, absent = (gated_tables(own, tables, consents=False) for tables in (there, base))
    consented = gated_tables(own, there, consents=True)
    for kind, first, second in (
        ("consents or is not there", absent, consented),
        ("consents or refuses", refused, consented),
        ("refuses or is not there", absent, refused),
    ):
        recording = Recording.of(own.plan, first, Chance(0), linked.published)
        results[kind] = part_of_guarantee(own.plan, [recording.replay(second)])
    return results
