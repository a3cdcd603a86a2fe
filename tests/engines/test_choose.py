"""Opening a table: rows, schema and the engine where the rows live."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from incrowd.core.schema import Column, Role, Schema
from incrowd.core.table import SourceOptions
from incrowd.engines.choose import open_table
from incrowd.engines.local.engine import LocalEngine
from incrowd.errors import UnknownColumn

SCHEMA = Schema((Column("id", Role.IDENTIFIER), Column("zip", Role.QUASI)))


def test_files_and_frames_are_read_in_this_process(tmp_path: Path) -> None:
    path = tmp_path / "data.txt"
    path.write_text("id:zip\n1:01234\n")
    for table in (
        open_table(path, SCHEMA, SourceOptions(delimiter=":")),
        open_table(pa.table({"id": ["1"], "zip": ["01234"]}), SCHEMA),
    ):
        assert table.engine == LocalEngine()
        assert table.schema == SCHEMA
        assert [batch.to_pylist() for batch in table.rows.batches(["zip"])] == [[{"zip": "01234"}]]


def test_a_declared_column_that_is_not_there_is_refused_at_once() -> None:
    with pytest.raises(UnknownColumn, match=r"no column zip\. Did you mean zip1\?"):
        open_table(pa.table({"id": ["1"], "zip1": ["01234"]}), SCHEMA)
