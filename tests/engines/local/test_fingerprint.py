"""Fingerprints: the same content under the same key, whatever it is called and however it lies in memory."""

from __future__ import annotations

import hashlib
import hmac
import sqlite3
from contextlib import closing
from importlib import import_module
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet as pq

from incrowd.engines.local.fingerprint import fingerprint
from incrowd.engines.readers.sources import open_source
from incrowd.errors import InvalidParameter, SourceChanged

pd = import_module("pandas")  # its types live in a package of their own

KEY = bytes(range(32))


def print_of(source: object, key: bytes = KEY) -> str:
    return fingerprint(open_source(source), key)


def test_a_file_is_hashed_by_its_bytes_and_length(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"a,b\n1,2\n")
    head = b"file 8"
    content = hashlib.sha256(len(head).to_bytes(8, "little") + head + b"a,b\n1,2\n").digest()
    expected = hmac.new(KEY, content, hashlib.sha256).hexdigest()
    assert print_of(path) == f"hmac-sha256:{expected}"


def test_a_copy_under_another_name_is_recognized_and_a_changed_byte_is_not(tmp_path: Path) -> None:
    first, copy, other = tmp_path / "a.csv", tmp_path / "b.csv", tmp_path / "c.csv"
    first.write_text("a,b\n1,2\n")
    copy.write_text("a,b\n1,2\n")
    other.write_text("a,b\n1,3\n")
    assert print_of(first) == print_of(copy) != print_of(other)


def test_another_key_gives_another_fingerprint(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n")
    assert print_of(path) != print_of(path, bytes(32))


def test_a_short_key_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="32 random bytes"):
        print_of(pa.table({"a": [1]}), b"short")


def test_files_of_a_folder_cannot_trade_bytes(tmp_path: Path) -> None:
    prints = set()
    for name, split in (("x", ([1], [2, 3])), ("y", ([1, 2], [3]))):
        folder = tmp_path / name
        folder.mkdir()
        for number, values in enumerate(split):
            pq.write_table(pa.table({"i": values}), folder / f"{number}.parquet")
        prints.add(print_of(folder))
    assert len(prints) == 2


def test_what_sqlite_has_not_yet_moved_into_the_file_counts(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (a TEXT)")
        connection.commit()
        before = print_of(path)
        connection.execute("INSERT INTO t VALUES ('x')")
        connection.commit()
        assert print_of(path) != before


def test_a_file_that_changed_since_it_was_opened_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n")
    source = open_source(path)
    path.write_text("a,b\n1,2\n3,4\n")
    with pytest.raises(SourceChanged):
        fingerprint(source, KEY)


VALUES = st.lists(st.none() | st.text(max_size=3), min_size=1, max_size=12)


@given(values=VALUES, cut=st.integers(0, 12))
def test_a_frame_is_hashed_by_its_values_not_by_how_it_lies_in_memory(values: list[str | None], cut: int) -> None:
    cut = min(cut, len(values))
    whole = pa.table(
        {"t": pa.array(values, pa.string()), "n": pa.array([None if v is None else len(v) for v in values], pa.int64())}
    )
    pieces = pa.concat_tables([whole.slice(0, cut), whole.slice(cut)])
    coded = whole.set_column(0, "t", whole["t"].dictionary_encode())
    longer = pa.concat_tables([whole, whole]).slice(len(values), len(values))
    assert {print_of(each) for each in (whole, pieces, coded, longer)} == {print_of(whole)}
    assert print_of(pl.from_arrow(whole)) == print_of(whole)


@given(values=VALUES, other=VALUES)
def test_different_values_have_different_fingerprints(values: list[str | None], other: list[str | None]) -> None:
    same = print_of(pa.table({"t": pa.array(values, pa.string())})) == print_of(
        pa.table({"t": pa.array(other, pa.string())})
    )
    assert same == (values == other)


def test_missing_is_not_empty_and_columns_cannot_trade_values() -> None:
    frames = [
        {"a": ["", None]},
        {"a": [None, ""]},
        {"a": ["x"], "b": ["y"]},
        {"a": ["y"], "b": ["x"]},
        {"a": [True, False]},
        {"a": [1, 0]},
        {"a": [1.0, 0.0]},
        {"a": [[1], [2]]},
        {"a": [[1, 2], []]},
    ]
    assert len({print_of(pa.table(frame)) for frame in frames}) == len(frames)


def test_a_pandas_frame_is_the_same_after_a_copy() -> None:
    frame = pd.DataFrame({"a": ["x", None], "b": [1.5, None], "c": [True, False]})
    assert print_of(frame) == print_of(frame.copy())
