"""Parquet and Arrow files, and folders of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import ipc
from pyarrow import parquet as pq

from incrowd.engines.readers.reader import BATCH_ROWS
from incrowd.engines.readers.sources import open_source
from incrowd.errors import SourceUnreadable

TABLE = pa.table(
    {
        "zip": ["01234", None, "NO"],
        "age": pa.array([1, None, 3], pa.int16()),
        "kind": pa.array(["x", "y", "x"]).dictionary_encode(),
        "large": pa.array(["é", "", None], pa.large_string()),
        "raw": pa.array([b"a", None, b"b"], pa.binary()),
        "list": [[1], [2], [3]],
        "a.b": ["1", "2", "3"],
    }
)


def write(path: Path, table: pa.Table = TABLE) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    else:
        maker = ipc.new_stream if path.suffix == ".arrows" else ipc.new_file
        with maker(path, table.schema) as file:
            file.write_table(table)
    return path


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.feather", "t.arrows"])
def test_values_come_back_as_they_were_with_text_as_plain_text(tmp_path: Path, name: str) -> None:
    source = open_source(write(tmp_path / name))
    assert source.names == tuple(TABLE.column_names)
    wanted = ["a.b", "zip", "age", "kind", "large", "raw"]
    (batch,) = source.batches(wanted)
    assert batch.schema.names == wanted
    expected = TABLE.select(wanted).to_pylist()
    assert batch.to_pylist() == [{**row, "raw": row["raw"].decode() if row["raw"] else None} for row in expected]
    texts = (batch.schema.field(each).type for each in ("zip", "large", "raw", "kind"))
    assert all(kind in (pa.string(), pa.dictionary(pa.int32(), pa.string())) for kind in texts)


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.arrows"])
def test_asking_for_no_columns_still_counts_the_rows(tmp_path: Path, name: str) -> None:
    source = open_source(write(tmp_path / name))
    assert [(batch.num_rows, batch.num_columns) for batch in source.batches([])] == [(3, 0)]


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow", "t.arrows"])
def test_big_files_come_in_bounded_batches_in_order(tmp_path: Path, name: str) -> None:
    count = 3 * BATCH_ROWS // 2
    source = open_source(write(tmp_path / name, pa.table({"i": np.arange(count)})))
    batches = list(source.batches(["i"]))
    assert max(batch.num_rows for batch in batches) <= BATCH_ROWS
    assert np.array_equal(np.concatenate([batch.column(0).to_numpy() for batch in batches]), np.arange(count))


def test_parquet_knows_its_length_without_reading(tmp_path: Path) -> None:
    assert open_source(write(tmp_path / "t.parquet")).rows == 3


def test_a_column_with_few_values_is_read_as_codes_and_one_with_many_as_text(tmp_path: Path) -> None:
    ids = [f"person-{i:012}" for i in range(200_000)]
    path = write(tmp_path / "t.parquet", pa.table({"sex": ["F", "M"] * 100_000, "id": ids}))
    batch = next(open_source(path).batches(["sex", "id"]))
    assert batch.schema.types == [pa.dictionary(pa.int32(), pa.string()), pa.string()]


def test_a_column_of_lists_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(SourceUnreadable, match="column list is of type list"):
        list(open_source(write(tmp_path / "t.parquet")).batches(["list"]))


def test_bytes_that_are_no_text_are_refused_without_showing_them(tmp_path: Path) -> None:
    source = open_source(write(tmp_path / "t.parquet", pa.table({"raw": [b"\xffsecret"]})))
    with pytest.raises(SourceUnreadable, match="column raw holds bytes that are not text") as caught:
        list(source.batches(["raw"]))
    assert caught.value.__context__ is None


def test_a_folder_is_read_in_the_order_of_its_names_hidden_files_left_out(tmp_path: Path) -> None:
    for number in (10, 2, 1):
        write(tmp_path / f"part-{number:03}.parquet", pa.table({"i": [number], "t": ["x"]}))
    write(tmp_path / "part-005.parquet", pa.table({"t": pa.array(["y"]).dictionary_encode(), "i": [5]}))
    (tmp_path / "_SUCCESS").touch()
    write(tmp_path / "_old.parquet", pa.table({"other": [0]}))
    write(tmp_path / ".part-003.parquet", pa.table({"i": [3], "t": ["x"]}))
    source = open_source(tmp_path)
    assert source.rows == 4
    assert [row["i"] for batch in source.batches(["i", "t"]) for row in batch.to_pylist()] == [1, 2, 5, 10]
    assert source.notes == ("4 Parquet files, read in the order of their names",)


def test_a_folder_whose_files_differ_in_columns_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", pa.table({"i": [1]}))
    write(tmp_path / "b.parquet", pa.table({"j": [1]}))
    with pytest.raises(SourceUnreadable, match=r"b\.parquet has other columns"):
        open_source(tmp_path)


def test_a_folder_that_keeps_a_column_in_its_names_is_refused(tmp_path: Path) -> None:
    (tmp_path / "year=2024").mkdir()
    write(tmp_path / "year=2024" / "a.parquet")
    with pytest.raises(SourceUnreadable, match="without partitions"):
        open_source(tmp_path)


def test_a_folder_without_parquet_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceUnreadable, match=r"no \*\.parquet file"):
        open_source(tmp_path)


@pytest.mark.parametrize("name", ["t.parquet", "t.arrow"])
def test_a_file_that_is_something_else_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("secret,1\n")
    with pytest.raises(SourceUnreadable, match="broken") as caught:
        open_source(path)
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_file_that_is_cut_off_is_refused_while_reading(tmp_path: Path) -> None:
    path = write(tmp_path / "t.arrows", pa.table({"i": np.arange(100_000)}))
    path.write_bytes(path.read_bytes()[:50_000])
    with pytest.raises(SourceUnreadable, match="broken Arrow file"):
        list(open_source(path).batches(["i"]))


def test_equal_names_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.arrow"
    write(path, pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]))
    with pytest.raises(SourceUnreadable, match="columns 1 and 2"):
        open_source(path)
