"""What a database spills has no name, and comes back as it was written."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from sqlglot import select

from incrowd.core.schema import Column, Role, Schema
from incrowd.engines.local import contributions
from incrowd.engines.readers.sources import open_source
from incrowd.engines.spill import SPILL_PLACE, memory_database
from incrowd.engines.sql.duckdb import warehouse
from incrowd.engines.sql.engine import Limits, StoredTable
from incrowd.engines.unnamed_file import UnnamedFile
from incrowd.noise.system import SystemCoins

MANY = 1_500_000
MEMORY = "60MB"


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The temporary folder, in which nothing may ever have a name."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.chdir(folder)
    yield folder
    assert list(folder.iterdir()) == []


def test_a_database_that_does_not_fit_in_memory_spills_without_a_name(scratch: Path) -> None:
    with memory_database(MEMORY) as database:
        database.execute("SET threads = 2")
        database.execute("CREATE TABLE t AS SELECT 'PLANTED' || md5(range::TEXT) AS name FROM range(?)", [MANY])
        spilled = database.sql("SELECT path FROM duckdb_temporary_files()").fetchall()
        assert spilled
        assert all(path.startswith(SPILL_PLACE) for (path,) in spilled)
        assert list(scratch.iterdir()) == []
        assert database.sql("SELECT COUNT(DISTINCT name) FROM t").fetchall() == [(MANY,)]


def test_a_table_of_a_warehouse_that_does_not_fit_is_asked_all_the_same(scratch: Path) -> None:
    names = pc.utf8_lpad(pa.array(np.arange(MANY)).cast(pa.string()), 40, "0")
    table = StoredTable(open_source(pa.table({"name": names})), Schema((Column("name"),)))
    count = select("COUNT(DISTINCT name) AS n").from_("people")
    with warehouse({"people": table}, Limits(memory=MEMORY, threads=2)) as tables:
        assert tables.collect(count)["n"].to_pylist() == [MANY]
        assert tables.base.sql("SELECT path FROM duckdb_temporary_files()").fetchall()
        assert list(scratch.iterdir()) == []


def test_the_rows_of_people_are_limited_out_of_memory(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contributions, "_MEMORY", MEMORY)
    people = pa.table({"id": pa.array(np.arange(MANY) // 3).cast(pa.string())})
    retained = contributions.limit(open_source(people), Column("id", Role.IDENTIFIER), 2, SystemCoins())
    assert (retained.mask.reshape(-1, 3).sum(axis=1) == 2).all()
    assert list(scratch.iterdir()) == []


def test_each_thread_has_its_own_place_in_a_file(scratch: Path) -> None:
    file, size = UnnamedFile(), 4096

    def work(number: int) -> bool:
        content = bytes([number]) * size
        for _ in range(50):
            file.seek(number * size)
            assert file.write(content) == size
            file.seek(number * size)
            if file.read(size) != content:
                return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(64)))
    assert (file.seek(0, 2), file.truncate(10), file.seek(0, 2)) == (64 * size, 10, 10)
    file.close()
