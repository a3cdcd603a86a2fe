"""Views of rows: who consents takes part, and nobody else."""

from __future__ import annotations

import pyarrow as pa

from incrowd.core.schema import Column
from incrowd.core.subjects import SubjectKey
from incrowd.engines.local.views import Consenting, PseudonymFilter
from incrowd.engines.readers.sources import open_source

KEY = SubjectKey(bytes(32))
BOTH = PseudonymFilter(Column("id"), KEY, frozenset(map(KEY.pseudonym, ("ann", "bob"))))


def test_rows_without_a_person_have_no_consent() -> None:
    source = open_source(pa.table({"id": ["ann", None, "eve", "bob"], "zip": ["1", "2", "3", "4"]}))
    rows = [row["zip"] for batch in Consenting(source, BOTH).batches(["zip"]) for row in batch.to_pylist()]
    assert rows == ["1", "4"]


def test_an_edge_needs_the_consent_of_both_ends() -> None:
    source = open_source(pa.table({"a": ["ann", "ann", "eve", "eve"], "b": ["bob", "eve", "bob", "eve"]}))
    edges = Consenting(source, BOTH, people=("a", "b"))
    assert [row for batch in edges.batches(["a", "b"]) for row in batch.to_pylist()] == [{"a": "ann", "b": "bob"}]
