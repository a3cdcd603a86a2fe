"""Fingerprints: the same content under the same key, whatever it is called and however it lies in memory."""

from __future__ import annotations

import hashlib
import hmac
import pickle
import sqlite3
from contextlib import closing
from datetime import date
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet as pq

from incrowd.core.domain import Categories, Type
from incrowd.core.fingerprints import SourceFingerprint
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.unit import Kind, Unit
from incrowd.engines.fingerprints import RowFingerprints, fingerprint, marks_of
from incrowd.engines.local.engine import LOCAL
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
    assert {print_of(item) for item in (whole, pieces, coded, longer)} == {print_of(whole)}
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


SCHEMA = Schema(
    (
        Column("age", type=Type.INTEGER),
        Column("pay", type=Type.DECIMAL),
        Column("born", type=Type.DATE),
        Column("well", type=Type.BOOLEAN),
        Column("zip"),
    )
)
PEOPLE = Schema((Column("who", Role.IDENTIFIER), Column("zip")), Unit(Kind.PERSON, column="who"))
TYPED: dict[str, list[Any]] = {
    "age": [41, 7, None, 41],
    "pay": [1.5, -2.0, 0.0, None],
    "born": [date(2001, 2, 3), None, date(1969, 12, 31), date(2001, 2, 3)],
    "well": [True, False, None, True],
    "zip": ["01234", "é", None, ""],
}
TEXT: dict[str, list[str | None]] = {
    "age": ["41", "007", None, "41.0"],
    "pay": ["1.50", "-2", "-0", None],
    "born": ["2001-02-03", None, "1969-12-31", "2001-02-03T00:00:00"],
    "well": ["yes", "F", None, "1"],
    "zip": ["01234", "é", None, ""],
}


def marks(table: pa.Table | dict[str, Any], schema: Schema = SCHEMA, key: bytes = KEY) -> SourceFingerprint:
    return marks_of(LOCAL, LOCAL.open(pa.table(table)), schema, key)


def samples(result: SourceFingerprint) -> tuple[str, bytes, bytes | None]:
    return result.content, result.rows.to_bytes(), None if result.people is None else result.people.to_bytes()


def test_the_same_values_in_any_type_order_and_cut_have_the_same_marks() -> None:
    table = pa.table(TYPED)
    others = [
        pa.table(TEXT),
        table.take([2, 0, 3, 1]),
        table.select(["zip", "well", "age", "pay", "born"]),
        pa.concat_tables([table.slice(0, 1), table.slice(1)]),
        table.set_column(4, "zip", table["zip"].dictionary_encode()),
        table.set_column(0, "age", table["age"].cast(pa.float64())),
        table.set_column(2, "born", table["born"].cast(pa.timestamp("us"))),
        table.append_column("undeclared", pa.array([1, 2, 3, 4])),
    ]
    for other in others:
        assert samples(marks(other)) == samples(marks(table))


@pytest.mark.parametrize("name", list(TYPED))
def test_every_value_of_every_declared_column_counts(name: str) -> None:
    changed = {**TYPED, name: [*TYPED[name][1:], TYPED[name][1]]}
    assert marks(changed).content != marks(TYPED).content


def test_a_row_more_or_less_or_twice_is_another_content() -> None:
    table = pa.table(TYPED)
    others = (table, table.slice(1), pa.concat_tables([table, table.slice(0, 1)]), table.slice(0, 0))
    assert len({marks(item).content for item in others}) == len(others)


def test_values_that_change_places_between_rows_or_columns_are_another_content() -> None:
    schema = Schema((Column("a"), Column("b")))
    tables = (
        {"a": ["x", "y"], "b": ["u", "v"]},
        {"a": ["y", "x"], "b": ["u", "v"]},
        {"a": ["u", "v"], "b": ["x", "y"]},
    )
    assert len({marks(item, schema).content for item in tables}) == 3


def test_another_key_has_nothing_in_common() -> None:
    one, two = marks(TYPED), marks(TYPED, key=bytes(32))
    assert one.content != two.content
    assert one.rows.overlap(two.rows) == 0


def test_people_are_known_under_any_name_of_their_column_and_as_text_or_numbers() -> None:
    numbers = Schema(
        (Column("person", Role.IDENTIFIER, type=Type.INTEGER), Column("zip")), Unit(Kind.PERSON, column="person")
    )
    one = marks({"who": ["17", "4", None, "17"], "zip": ["1", "2", "3", "4"]}, PEOPLE)
    two = marks({"person": [4, 17, 17], "zip": ["9", "9", "9"]}, numbers)
    assert one.people is not None
    assert two.people is not None
    assert len(one.people.bits) == 2
    assert one.people.to_bytes() == two.people.to_bytes()
    assert one.rows.overlap(two.rows) == 0


def test_who_has_which_row_is_part_of_the_content() -> None:
    one = marks({"who": ["a", "b"], "zip": ["1", "2"]}, PEOPLE)
    two = marks({"who": ["b", "a"], "zip": ["1", "2"]}, PEOPLE)
    assert one.content != two.content


def test_marks_gathered_apart_and_merged_are_the_same_and_carry_no_key() -> None:
    chance = np.random.default_rng(5)
    table = pa.table(
        {"who": chance.integers(0, 4000, 9000).astype(str), "zip": chance.integers(0, 99, 9000).astype(str)}
    )
    whole = RowFingerprints(PEOPLE, KEY)
    for piece in table.to_batches(max_chunksize=1000):
        part = RowFingerprints(PEOPLE, KEY)
        part.add(piece)
        packed = pickle.dumps(part)
        assert KEY not in packed
        whole.merge(pickle.loads(packed))
    assert samples(whole.marks()) == samples(marks(table, PEOPLE))


@pytest.mark.parametrize("empty", [pa.nulls(3), pa.array([None] * 3, pa.string()), pa.array([None] * 3, pa.int64())])
def test_a_column_of_nothing_is_the_same_in_every_type(empty: pa.Array) -> None:
    table = pa.table(TYPED).slice(0, 3)
    expected = marks(table.set_column(0, "age", pa.array([None] * 3, pa.int32())))
    assert samples(marks(table.set_column(0, "age", empty))) == samples(expected)


def test_sets_in_lists_and_in_text_have_the_same_marks() -> None:
    schema = Schema((Column("ills", hierarchy=Flat(Categories(("flu", "gout"))), separator=";"),))
    assert (
        marks({"ills": [["flu", "gout"], ["flu"]]}, schema).content
        == marks({"ills": ["flu;gout", "flu"]}, schema).content
    )
    assert (
        marks({"ills": [["flu", "gout"], []]}, schema).content != marks({"ills": [["flu"], ["gout"]]}, schema).content
    )


def test_a_column_of_a_value_for_each_row_has_the_fingerprint_of_its_values() -> None:
    schema = Schema((Column("age", type=Type.INTEGER), Column("zip")))
    rows: dict[str, list[Any]] = {
        "age": [str(number) for number in range(50)] + ["x", None],
        "zip": [f"0{number}" for number in range(52)],
    }
    plain, coded = RowFingerprints(schema, KEY), RowFingerprints(schema, KEY)
    for start in (0, 13, 26, 39):  # after the first batch each value is hashed as it comes
        batch = pa.record_batch({name: values[start : start + 13] for name, values in rows.items()})
        plain.add(batch)
        columns = [column.dictionary_encode() for column in batch.columns]
        coded.add(pa.RecordBatch.from_arrays(columns, names=batch.schema.names))
    assert plain.marks().content == coded.marks().content
