from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import FrozenInstanceError

import pyarrow as pa
import pytest

from incrowd.core.table import Engine, Table
from incrowd.engines.local.engine import LocalEngine
from tests.people import PEOPLE
from tests.tables import Batches


def test_a_table_is_rows_with_their_meaning_and_reads_nothing() -> None:
    class Unread(Batches):
        def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
            raise AssertionError("read before a mechanism asked")

    engine: Engine = LocalEngine()
    table = Table(PEOPLE, Unread(pa.table({"zip": ["02139"]})), engine)
    assert table.rows.names == ("zip",)
    with pytest.raises(FrozenInstanceError):
        table.schema = PEOPLE  # type: ignore[misc]
