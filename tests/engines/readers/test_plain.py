from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from incrowd.engines.readers.plain import plain
from incrowd.engines.readers.sources import open_source
from tests.texts import broken_texts

BROKEN = broken_texts(b"\xff\xfe", b"ab", b"")
WAYS: dict[str, Callable[[pa.Array], pa.Array]] = {
    "string": lambda array: array,
    "large string": lambda array: array.cast(pa.large_string()),
    "view": lambda array: array.cast(pa.string_view()),
    "slice": lambda array: pa.concat_arrays([pa.array(["x"]), array]).slice(1),
    "dictionary": lambda array: pa.DictionaryArray.from_arrays(pa.array([0, 1, 2], pa.int8()), array),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_cell_that_is_no_text_is_missing_and_the_others_are_as_they_were(way: str) -> None:
    assert plain(WAYS[way](BROKEN), "x").to_pylist() == [None, "ab", ""]


def test_an_item_that_is_no_text_is_missing_in_its_set() -> None:
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 3]), BROKEN)
    assert plain(lists, "x").to_pylist() == [[None, "ab"], [""]]
    assert plain(pa.array([["a"], None, []]).slice(1), "x").to_pylist() == [None, []]


def test_good_text_is_not_copied() -> None:
    texts = pa.array(["é", None])
    assert plain(texts, "x") is texts


def test_what_a_row_holds_does_not_hang_on_the_others(tmp_path: Path) -> None:
    table = pa.table({"zip": broken_texts(*[b"ab"] * 1000, b"\xff"), "age": list(range(1001))})
    pq.write_table(table, tmp_path / "with.parquet")
    pq.write_table(table.slice(0, 1000), tmp_path / "without.parquet")
    whole, rest = (
        [row for batch in open_source(tmp_path / name).batches(["zip", "age"]) for row in batch.to_pylist()]
        for name in ("with.parquet", "without.parquet")
    )
    assert whole == [*rest, {"zip": None, "age": 1000}]


def test_text_and_bytes_of_sqlite_that_are_no_unicode_are_missing(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "t.sqlite") as base:
        base.execute("CREATE TABLE t (zip)")
        base.executemany("INSERT INTO t VALUES (CAST(? AS TEXT))", [(b"\xff",), (b"ab",)])
        base.executemany("INSERT INTO t VALUES (?)", [(b"\xfe",), (b"cd",), (7,)])
    (batch,) = open_source(tmp_path / "t.sqlite").batches(["zip"])
    assert batch.column(0).to_pylist() == [None, "ab", None, "cd", "7"]
