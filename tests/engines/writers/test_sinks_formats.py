"""What is written: the released values, nothing else, the same bytes each time."""

from __future__ import annotations

import csv
import datetime as dt
import io
from decimal import Decimal
from importlib import import_module
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet as pq

from incrowd.engines.readers.sources import open_source
from incrowd.engines.writers import files
from incrowd.engines.writers.files import CsvStyle, pieces, rebuild, write_csv
from incrowd.engines.writers.sinks import write_table
from incrowd.errors import InvalidParameter

pd = import_module("pandas")  # its types live in a package of their own

MIXED = pa.table(
    {
        "zip": ["01234", None, "NO"],
        "kind": pa.array(["y", "x", "y"]).dictionary_encode(),
        "age": pa.array([41, None, 7], pa.int64()),
        "share": [0.5, 1e300, None],
        "born": [dt.date(2024, 2, 29), None, dt.date(1, 1, 1)],
        "at": pa.array([dt.datetime.fromisoformat("2024-02-29T07:00"), None, None], pa.timestamp("us")),
        "ok": [True, None, False],
        "paid": [Decimal("1.50"), None, Decimal("-2.25")],
    }
)
HEALTH = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


def stream(table: pa.Table, rows: int) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(table.schema, iter(table.to_batches(max_chunksize=rows)))


def hiding(count: int = 3000) -> pa.Table:
    """Return a table from which rows were filtered away, in whose dictionaries they live on."""
    names = pa.array([f"secret-{i}" if i % 3 else f"shown-{i % 5}" for i in range(count)])
    table = pa.table({"name": names.dictionary_encode(), "plain": names, "n": range(count)})
    retained = table.filter(pc.starts_with(table["plain"], "shown"))
    assert any("secret" in value for value in retained["name"].chunk(0).dictionary.to_pylist())  # the trap
    return retained


def test_parquet_round_trip(tmp_path: Path) -> None:
    write_table(MIXED, tmp_path / "t.parquet")
    assert pq.read_table(tmp_path / "t.parquet").to_pylist() == MIXED.to_pylist()


def test_csv_round_trip(tmp_path: Path) -> None:
    write_table(MIXED, tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text().splitlines() == [
        "zip,kind,age,share,born,at,ok,paid",
        "01234,y,41,0.5,2024-02-29,2024-02-29 07:00:00.000000,true,1.50",
        ",x,,1e+300,,,,",
        "NO,y,7,,0001-01-01,,false,-2.25",
    ]


@pytest.mark.parametrize("name", ["t.parquet", "t.csv", "t.tsv"])
def test_what_is_written_is_read_by_the_sources(tmp_path: Path, name: str) -> None:
    write_table(MIXED, tmp_path / name)
    source = open_source(tmp_path / name)
    assert source.names == tuple(MIXED.column_names)
    assert [batch.column("zip").to_pylist() for batch in source.batches(["zip"])] == [["01234", None, "NO"]]


@pytest.mark.parametrize("name", ["t.parquet", "t.csv"])
def test_no_value_that_was_filtered_away_is_anywhere_in_the_bytes(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    write_table(hiding(), path)
    assert b"secret" not in path.read_bytes()
    if name == "t.parquet":
        (batch, *_) = pq.ParquetFile(path, read_dictionary=["name", "plain"]).iter_batches()
        for column in ("name", "plain"):
            assert sorted(batch.column(column).dictionary.to_pylist()) == [f"shown-{i}" for i in range(5)]


def test_no_value_that_was_filtered_away_is_in_the_uncompressed_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = pq.ParquetWriter

    def uncompressed(*arguments: object, **options: object) -> pq.ParquetWriter:
        return real(*arguments, **{**options, "compression": "none", "compression_level": None})

    monkeypatch.setattr(pq, "ParquetWriter", uncompressed)
    write_table(hiding(), tmp_path / "t.parquet")
    content = (tmp_path / "t.parquet").read_bytes()
    assert b"shown-0" in content
    assert b"secret" not in content


def test_each_row_group_knows_its_own_values_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "ROW_GROUP", 2)
    coded = pa.array(["b", "a", "z", "y", "y"]).dictionary_encode()
    write_table(pa.table({"c": coded}), tmp_path / "t.parquet")
    footer = pq.read_metadata(tmp_path / "t.parquet")
    ranges = [footer.row_group(i).column(0).statistics for i in range(footer.num_row_groups)]
    assert [(item.min, item.max) for item in ranges] == [("a", "b"), ("y", "z"), ("y", "y")]


def test_dictionaries_are_sorted_so_that_codes_do_not_betray_the_order_of_the_input() -> None:
    rebuilt = rebuild(pa.table({"c": pa.array(["z", None, "b", "a", "b"]).dictionary_encode()}))["c"].chunk(0)
    assert rebuilt.dictionary.to_pylist() == ["a", "b", "z"]
    assert rebuilt.to_pylist() == ["z", None, "b", "a", "b"]


def test_dictionaries_of_every_kind_are_rebuilt() -> None:
    odd = pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.uint8()), pa.array([None, "x"], pa.large_string()))
    numbers = pa.array([3, 1, 3]).dictionary_encode()
    nothing = pa.array([None, None, None], pa.string()).dictionary_encode()
    rebuilt = rebuild(pa.table({"odd": odd, "numbers": numbers, "nothing": nothing}))
    assert rebuilt.to_pydict() == {"odd": [None, "x", None], "numbers": [3, 1, 3], "nothing": [None] * 3}
    text = pa.dictionary(pa.int32(), pa.string())
    assert rebuilt.schema.types == [text, pa.int64(), text]


def test_no_metadata_of_other_programs_gets_into_the_file(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": ["x"]}, index=pd.Index(["secret"]))
    table = pa.Table.from_pandas(frame).drop_columns(["__index_level_0__"])
    noted = table.set_column(0, pa.field("a", pa.string(), metadata={"note": "secret"}), table["a"].cast(pa.string()))
    noted = noted.replace_schema_metadata({"pandas": "secret", "path": "secret"})
    write_table(noted, tmp_path / "t.parquet")
    assert pq.read_metadata(tmp_path / "t.parquet").metadata is None
    assert b"secret" not in (tmp_path / "t.parquet").read_bytes()
    assert str(tmp_path).encode() not in (tmp_path / "t.parquet").read_bytes()


@pytest.mark.parametrize("name", ["t.parquet", "t.csv"])
def test_the_same_values_give_the_same_bytes_however_they_are_cut_and_coded(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "ROW_GROUP", 100)
    table = hiding().select(["name", "n"])
    shuffled = table.take(pa.array(range(len(table))[::-1])).take(pa.array(range(len(table))[::-1]))
    recoded = table.set_column(0, "name", table["name"].cast(pa.string()).dictionary_encode())
    written = set()
    for item in (table, stream(table, 7), stream(table, 1000), shuffled, recoded, table.combine_chunks()):
        write_table(item, tmp_path / name)
        written.add((tmp_path / name).read_bytes())
    assert len(written) == 1


@pytest.mark.parametrize("name", ["t.parquet", "t.csv"])
def test_a_table_without_rows_is_a_valid_file(tmp_path: Path, name: str) -> None:
    write_table(MIXED.slice(0, 0), tmp_path / name)
    source = open_source(tmp_path / name)
    assert source.names == tuple(MIXED.column_names)
    assert sum(batch.num_rows for batch in source.batches(["zip"])) == 0
    write_table(stream(MIXED.slice(0, 0), 5), tmp_path / name)
    assert open_source(tmp_path / name).names == source.names


@given(length=st.integers(0, 30), cut=st.integers(1, 7), rows=st.integers(1, 10))
def test_pieces_have_exactly_the_asked_size_and_lose_nothing(length: int, cut: int, rows: int) -> None:
    table = pa.table({"i": pa.array(range(length), pa.int64())})
    result = list(pieces(stream(table, cut), rows))
    assert [value for piece in result for value in piece["i"].to_pylist()] == list(range(length))
    assert all(piece.num_rows == rows for piece in result[:-1])


def test_a_missing_value_is_empty_and_an_empty_text_is_quoted(tmp_path: Path) -> None:
    write_table(pa.table({"a": ["", None], "b": ["x", "y"]}), tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == 'a,b\n"",x\n,y\n'


def test_in_a_single_column_no_row_is_an_empty_line(tmp_path: Path) -> None:
    write_table(pa.table({"a": ["x", None, ""]}), tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == 'a\nx\n""\n""\n'
    assert sum(batch.num_rows for batch in open_source(tmp_path / "t.csv").batches(["a"])) == 3


def test_names_of_columns_are_quoted_where_needed(tmp_path: Path) -> None:
    write_table(pa.table({'a,"b"': ["x"], "c": ["y"]}), tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == '"a,""b""",c\nx,y\n'


def test_formulas_are_kept_by_default_and_guarded_on_request(tmp_path: Path) -> None:
    formulas = ["=1+1", "+x", "-x", "@x", "\tx", "a=b", None]
    table = pa.table({"t": formulas, "n": [-1] * 7})
    write_csv(table, tmp_path / "keep.csv")
    write_csv(table, tmp_path / "guarded.csv", CsvStyle(formulas="guard"))
    retained, guarded = (
        [row[0] for row in csv.reader(io.StringIO((tmp_path / name).read_bytes().decode(), newline=""))][1:]
        for name in ("keep.csv", "guarded.csv")
    )
    assert retained == ["=1+1", "+x", "-x", "@x", "\tx", "a=b", ""]
    assert guarded == ["'=1+1", "'+x", "'-x", "'@x", "'\tx", "a=b", ""]
    assert ",-1\n" in (tmp_path / "guarded.csv").read_text()


@pytest.mark.parametrize("style", [{"delimiter": ";;"}, {"delimiter": '"'}, {"formulas": "run"}])
def test_styles_that_mean_nothing_are_refused(style: dict[str, str]) -> None:
    with pytest.raises(InvalidParameter):
        CsvStyle(**style)


CELLS = st.none() | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5)
COLUMNS = st.integers(0, 8).flatmap(
    lambda rows: st.lists(st.lists(CELLS, min_size=rows, max_size=rows), min_size=1, max_size=3)
)


@settings(max_examples=150, suppress_health_check=HEALTH, deadline=None)
@given(columns=COLUMNS, delimiter=st.sampled_from(",;\t|"), coded=st.booleans(), times=st.integers(1, 3))
def test_any_text_is_written_so_that_others_read_it_back(
    tmp_path: Path, columns: list[list[str | None]], delimiter: str, coded: bool, times: int
) -> None:
    columns = [[cell for cell in column for _ in range(times)] for column in columns]
    arrays = [pa.array(column, pa.string()) for column in columns]
    table = pa.table({f"c{i}": array.dictionary_encode() if coded else array for i, array in enumerate(arrays)})
    path = tmp_path / "t.csv"
    write_csv(table, path, CsvStyle(delimiter))
    text = io.StringIO(path.read_bytes().decode(), newline="")
    expected = [[cell or "" for cell in row] for row in zip(*columns, strict=True)]
    assert list(csv.reader(text, delimiter=delimiter))[1:] == expected
    write_table(table, tmp_path / "t.parquet")
    assert pq.read_table(tmp_path / "t.parquet").to_pydict() == table.to_pydict()
