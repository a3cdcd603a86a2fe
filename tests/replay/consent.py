"""The consent gate in front of private methods: a refuser loses nothing, and consenting loses no more than taking part.

Neighbors differ by one person's rows together with that person's own events: the person who consents is compared with
the person who is not there, and with the same rows of a person who refuses.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa

from incrowd.core.subjects import SubjectKey
from incrowd.core.table import Table
from incrowd.engines.local.engine import LocalEngine
from incrowd.engines.local.views import PseudonymFilter
from incrowd.workflows.policy.policy import Policy
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
_KEY, _PERSON = SubjectKey(bytes(32)), "zz"


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
