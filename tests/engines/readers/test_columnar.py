"""Frames of pandas, Polars and Arrow, through the Arrow C stream interface."""

from __future__ import annotations

import datetime as dt
from importlib import import_module
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import ipc
from pyarrow import parquet as pq

from incrowd.core.table import SourceOptions
from incrowd.engines.local.engine import LOCAL
from incrowd.engines.readers.reader import BATCH_ROWS
from incrowd.engines.readers.sources import open_source
from incrowd.errors import InvalidParameter, SourceUnreadable

pd = import_module("pandas")  # its types live in a package of their own

DATA: dict[str, list[object]] = {
    "zip": ["01234", None, "NO"],
    "age": [41, 7, None],
    "born": [dt.date(2024, 2, 29), None, dt.date(1999, 12, 31)],
    "ok": [True, False, None],
}


def values(frame: object, *columns: str) -> list[tuple[object, ...]]:
    source = open_source(frame)
    return [tuple(row.values()) for batch in source.batches(columns or source.names) for row in batch.to_pylist()]


@pytest.mark.parametrize("make", [pa.table, pl.DataFrame, pa.RecordBatch.from_pydict, pd.DataFrame])
def test_frames_of_every_kind_give_the_same_rows(make: object) -> None:
    frame = make(DATA)  # type: ignore[operator]  # each maker takes a dictionary of columns
    assert values(frame, "zip", "age", "born") == [
        ("01234", 41, dt.date(2024, 2, 29)),
        (None, 7, None),
        ("NO", None, dt.date(1999, 12, 31)),
    ]
    assert open_source(frame).rows == 3
    assert open_source(frame).address is None


def test_text_and_categories_become_plain_text_and_codes() -> None:
    polars = pl.DataFrame({"t": ["x", None], "c": pl.Series(["x", "y"], dtype=pl.Categorical)})
    pandas = pd.DataFrame({"t": ["x", None], "c": pd.Categorical(["x", "y"])})
    for frame in (polars, pandas):
        (batch,) = open_source(frame).batches(["t", "c"])
        assert batch.schema.types == [pa.string(), pa.dictionary(pa.int32(), pa.string())]
        assert batch.schema.metadata is None
        assert batch.to_pydict() == {"t": ["x", None], "c": ["x", "y"]}


def test_categories_of_numbers_become_numbers() -> None:
    (batch,) = open_source(pd.DataFrame({"c": pd.Categorical([3, 1, 3])})).batches(["c"])
    assert batch.column(0).to_pylist() == [3, 1, 3]
    assert batch.column(0).type == pa.int64()


def test_a_dictionary_with_a_null_in_it_is_taken_apart() -> None:
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], pa.int8()), pa.array(["x", None]))
    assert values(pa.table({"c": coded})) == [("x",), (None,), ("x",)]


def test_other_layouts_are_made_plain() -> None:
    table = pa.table(
        {
            "runs": pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array(["x", "y"])),
            "half": pa.array([np.float16(0.5), None, np.float16(2)], pa.float16()),
            "none": pa.nulls(3),
        }
    )
    assert values(table) == [("x", 0.5, None), ("x", None, None), ("y", 2.0, None)]


def test_a_named_index_is_a_column_and_an_unnamed_one_is_not() -> None:
    frame = pd.DataFrame({"a": [1, 2]}, index=pd.Index(["x", "y"], name="key"))
    assert set(open_source(frame).names) == {"a", "key"}
    assert open_source(frame.rename_axis(None)).names == ("a",)


def test_long_frames_come_in_bounded_batches_in_order() -> None:
    numbers = np.arange(2 * BATCH_ROWS + 1)
    batches = list(open_source(pa.table({"i": numbers})).batches(["i"]))
    assert [batch.num_rows for batch in batches] == [BATCH_ROWS, BATCH_ROWS, 1]
    assert np.array_equal(np.concatenate([batch.column(0).to_numpy() for batch in batches]), numbers)
    assert [batch.num_rows for batch in open_source(pa.table({"i": numbers})).batches([])] == [BATCH_ROWS] * 2 + [1]


def test_what_can_be_read_once_is_refused() -> None:
    table = pa.table({"a": [1]})
    with pytest.raises(SourceUnreadable, match="can be read once"):
        open_source(pa.RecordBatchReader.from_batches(table.schema, table.to_batches()))


def test_what_is_no_frame_is_refused_with_advice() -> None:
    with pytest.raises(SourceUnreadable, match="a dict is not a readable table"):
        open_source({"a": [1]})
    with pytest.raises(SourceUnreadable, match=r"a LazyFrame is not a readable table.* Call \.collect\(\)"):
        open_source(pl.DataFrame({"a": [1]}).lazy())


def test_a_column_that_mixes_types_is_refused_without_showing_values() -> None:
    with pytest.raises(SourceUnreadable, match="mixes types") as caught:
        open_source(pd.DataFrame({"a": pd.Series(["secret", 1], dtype=object)}))
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None


def test_equal_names_of_a_frame_are_refused() -> None:
    with pytest.raises(SourceUnreadable):
        open_source(pd.DataFrame([[1, 2]], columns=["a", "a"]))


def test_options_of_files_mean_nothing_for_frames() -> None:
    with pytest.raises(InvalidParameter, match="delimiter means nothing for a frame"):
        open_source(pa.table(DATA), SourceOptions(delimiter=";"))


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
    required = ["a.b", "zip", "age", "kind", "large", "raw"]
    (batch,) = source.batches(required)
    assert batch.schema.names == required
    expected = TABLE.select(required).to_pylist()
    assert batch.to_pylist() == [{**row, "raw": row["raw"].decode() if row["raw"] else None} for row in expected]
    texts = (batch.schema.field(item).type for item in ("zip", "large", "raw", "kind"))
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


def test_types_of_a_folder_name_the_zone_of_any_of_its_files(tmp_path: Path) -> None:
    """Days are read by the zone of the file: the type of the first one would speak for the others."""
    moment, day = pa.array([dt.datetime(2025, 1, 31, 23, 30)]), pa.array([dt.date(2025, 1, 31)])  # noqa: DTZ001 - no zone
    utc = moment.cast(pa.timestamp("us", "UTC"))
    berlin = utc.cast(pa.timestamp("us", "Europe/Berlin"))
    for name, parts, expected in (
        ("zones", (moment, utc, berlin), berlin.type),
        ("days", (day, berlin), berlin.type),
        ("universal", (day, utc), utc.type),
        ("units", (berlin, berlin.cast(pa.timestamp("ms", "Europe/Berlin"))), berlin.type),
        ("no zone", (moment, day), pa.string()),
    ):
        (tmp_path / name).mkdir()
        for number, column in enumerate(parts):
            pq.write_table(pa.table({"day": column}), tmp_path / name / f"{number}.parquet")
        assert LOCAL.types(open_source(tmp_path / name), ["day"])["day"] == expected


def test_a_column_in_files_and_in_names_of_folders_is_refused(tmp_path: Path) -> None:
    (tmp_path / "i=2024").mkdir()
    write(tmp_path / "i=2024" / "a.parquet", pa.table({"i": [1]}))
    with pytest.raises(SourceUnreadable, match="leave one out"):
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
