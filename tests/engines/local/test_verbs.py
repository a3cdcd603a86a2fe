"""What verbs ask of the local engine beside counting: types, validation, digests, summaries."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from incrowd.core.domain import Type
from incrowd.core.schema import Column, Schema
from incrowd.engines.local.engine import LOCAL
from incrowd.errors import InvalidParameter, SourceInvalid, SourceUnreadable
from tests.tables import Batches

AGE = Schema((Column("age", type=Type.INTEGER), Column("zip")))


class Total:
    """How many rows there are, and in how many batches they came."""

    def __init__(self) -> None:
        self.rows = 0
        self.batches = 0

    def add(self, batch: pa.RecordBatch) -> None:
        self.rows += len(batch)
        self.batches += 1

    def merge(self, other: Total) -> None:
        raise AssertionError("one process needs one summary")


def test_types_are_those_of_the_batches(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("age,zip\n41,01234\n")
    assert LOCAL.types(LOCAL.open(path), ["zip", "age"]) == {"zip": pa.string(), "age": pa.string()}
    assert LOCAL.types(LOCAL.open(pa.table({"pay": [1.5]})), ["pay"]) == {"pay": pa.float64()}


def test_a_column_without_rows_is_text() -> None:
    assert LOCAL.types(Batches(pa.table({"pay": pa.array([], pa.float64())})), ["pay"]) == {"pay": pa.string()}


def test_a_value_that_cannot_be_read_is_named_by_its_place() -> None:
    rows = LOCAL.open(pa.table({"age": ["41", "forty"], "zip": ["01234", "forty"]}))
    with pytest.raises(SourceInvalid, match="column age: 1 cell is not a whole number, in row 2") as caught:
        LOCAL.marks(rows, AGE, bytes(32))
    assert "forty" not in str(caught.value)


def test_rows_that_are_no_source_are_validated_too() -> None:
    with pytest.raises(SourceInvalid, match="column age"):
        LOCAL.marks(Batches(pa.table({"age": ["forty"], "zip": ["1"]})), AGE, bytes(32))


def test_validating_tells_how_far_it_is() -> None:
    reports = list[tuple[int, int | None]]()
    LOCAL.marks(
        LOCAL.open(pa.table({"age": ["41", "7"], "zip": ["1", "2"]})),
        AGE,
        bytes(32),
        lambda *done: reports.append(done),
    )
    assert reports == [(2, 2)]


def test_the_digest_is_of_the_content() -> None:
    one, same, other = (LOCAL.open(pa.table({"zip": [value]})) for value in ("01234", "01234", "1234"))
    assert LOCAL.digest(one) == LOCAL.digest(same) != LOCAL.digest(other)


def test_rows_that_were_not_opened_have_no_digest() -> None:
    with pytest.raises(InvalidParameter, match="open it first"):
        LOCAL.digest(Batches(pa.table({"zip": ["01234"]})))


def test_one_summary_learns_from_every_batch() -> None:
    learned = LOCAL.learn(Batches(pa.table({"zip": ["1"] * 10}), size=3), ["zip"], Total)
    assert (learned.rows, learned.batches) == (10, 4)


def test_watched_rows_are_the_same_rows() -> None:
    reports = list[int]()
    rows = LOCAL.watched(Batches(pa.table({"zip": ["1"] * 10}), size=4), lambda done, _: reports.append(done))
    assert (rows.names, rows.rows, sum(map(len, rows.batches(["zip"])))) == (("zip",), 10, 10)
    assert reports == [4, 8, 10]


def test_a_table_of_a_cluster_is_refused_with_the_way_out() -> None:
    with pytest.raises(SourceUnreadable, match="--engine spark"):
        LOCAL.open("::sales.visits")
