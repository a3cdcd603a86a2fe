"""The Spark engine in this process: every source it reads, and what it says when one is not as it should be."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from incrowd.core.cells import Cells
from incrowd.core.domain import Dates, Numbers, Type
from incrowd.core.hierarchy.calendar import Calendar, Period
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.table import Engine, SourceOptions
from incrowd.engines.local.engine import LocalEngine
from incrowd.engines.spark.engine import SparkEngine
from incrowd.engines.spark.shared_disk import SharedParquet
from incrowd.errors import IncrowdError, InvalidParameter, SourceChanged, SourceInvalid, SourceUnreadable, UnknownColumn
from incrowd.noise.positioned import PositionedSample
from incrowd.noise.system import SystemCoins
from tests.engines.spark.test_tasks import same
from tests.people import PEOPLE

HERE = LocalEngine()
ROWS = 700


def people() -> pa.Table:
    """Text of every kind: inside and outside of domains, missing, unreadable, with leading zeros."""
    draw = np.random.default_rng(3)
    values: dict[str, Sequence[str | None]] = {
        "sex": ("F", "M", "X", None),
        "age": ("5", "15", "25", "99", "x", None),
        "zip": ("021", "022", "0", "945", None),
        "born": ("2020-01-01", "2020-01-31", "2020-02-01", "2021-01-01", "soon", None),
        "job": ("nurse", "doctor", "clerk", "pilot", None),
        "pay": ("1.5", "10", "9", "1.50", None, "?"),
    }
    columns = {name: [some[n] for n in draw.integers(0, len(some), ROWS)] for name, some in values.items()}
    return pa.table({name: pa.array(sampled, pa.string()) for name, sampled in columns.items()})


def in_parts(table: pa.Table, folder: Path, parts: int, groups: int = 10**6) -> Path:
    """Write a table as so many Parquet files."""
    folder.mkdir()
    size = -(-len(table) // parts)
    for part in range(parts):
        pq.write_table(table.slice(part * size, size), folder / f"part-{part}.parquet", row_group_size=groups)
    return folder


def by_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Spark read Parquet files, as it does where tasks do not find them."""
    monkeypatch.setattr("incrowd.engines.spark.opening.shared_parquet", lambda *_: None)


@pytest.mark.parametrize("reader", ["task", "spark"])
@pytest.mark.parametrize("levels", [{}, {"zip": 1, "born": 2, "age": 1}, {"zip": 3, "job": 2, "sex": 1, "pay": 1}])
def test_counts_are_those_of_the_local_engine(
    spark_engine: Engine, tmp_path: Path, levels: dict[str, int], reader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if reader == "spark":
        by_spark(monkeypatch)
    folder = in_parts(people(), tmp_path / "people", 3)
    cells, sample = Cells.of(PEOPLE, levels), PositionedSample(Fraction(1, 2), bytes(range(32)), bytes(range(32)))
    result = spark_engine.count(spark_engine.open(folder), cells, sample, at_least=2)
    assert same(result, HERE.count(HERE.open(folder), cells, sample, at_least=2))
    assert len(result) > 1


def test_stored_types_are_read_as_the_local_engine_reads_them(spark_engine: Engine, tmp_path: Path) -> None:
    days = [date(1890, 5, 17), date(2020, 2, 29), None, date(2020, 3, 1)] * 20
    table = pa.table(
        {
            "day": pa.array(days, pa.date32()),
            "moment": pa.array([day and datetime(day.year, day.month, day.day, 23, 59) for day in days]),  # noqa: DTZ001
            "whole": pa.array([1, None, -5, 2**40] * 20, pa.int64()),
            "small": pa.array([1, 2, None, 3] * 20, pa.int8()),
            "real": pa.array([0.5, float("nan"), -0.0, 1e300] * 20),
            "exact": pa.array([Decimal("1.50"), None, Decimal("2.00"), Decimal("0.25")] * 20, pa.decimal128(9, 2)),
            "flag": pa.array([True, False, None, True] * 20),
            "a.`dotted` name": pa.array(["x", "y", None, "Z"] * 20),
        }
    )
    pq.write_table(table, tmp_path / "typed.parquet")
    schema = Schema(
        (
            Column("day", type=Type.DATE, hierarchy=Calendar(Dates(), (Period.MONTH,))),
            Column("moment", type=Type.DATE, hierarchy=Calendar(Dates(), (Period.MONTH,))),
            Column("whole", type=Type.INTEGER, hierarchy=Flat(Numbers())),
            Column("small", type=Type.INTEGER, hierarchy=Flat(Numbers(0, 5))),
            Column("real", type=Type.DECIMAL, hierarchy=Flat(Numbers(type=Type.DECIMAL))),
            Column("exact"),
            Column("flag"),
            Column("a.`dotted` name"),
        )
    )
    cells = Cells.of(schema, {"moment": 1})
    rows = spark_engine.open(tmp_path / "typed.parquet")
    assert same(spark_engine.count(rows, cells), HERE.count(HERE.open(tmp_path / "typed.parquet"), cells))
    local = HERE.types(HERE.open(tmp_path / "typed.parquet"), ["day", "whole", "exact"])
    assert dict(spark_engine.types(rows, ["day", "whole", "exact"])) == dict(local)
    spark_engine.marks(rows, schema, bytes(32))


def test_the_sample_does_not_depend_on_partitions(
    spark_engine: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = in_parts(people(), tmp_path / "people", 2, groups=50)
    cells, sample = Cells.of(PEOPLE, {}), PositionedSample.fresh(Fraction(1, 2))
    whole = spark_engine.count(spark_engine.open(folder), cells, sample)
    by_spark(monkeypatch)
    assert same(spark_engine.count(spark_engine.open(folder), cells, sample), whole)
    spark_engine.session.conf.set("spark.sql.files.maxPartitionBytes", "2000")
    try:
        rows = spark_engine.open(folder)
        assert rows.origin.content.select("sex").count() == ROWS
        assert same(spark_engine.count(rows, cells, sample), whole)
    finally:
        spark_engine.session.conf.unset("spark.sql.files.maxPartitionBytes")


def test_text_is_read_by_the_local_reader(spark_engine: Engine, tmp_path: Path) -> None:
    table = people().slice(0, 60).append_column("note", pa.array(['a;"b"\nc', "", "NO"] * 20))
    folder = tmp_path / "texts"
    folder.mkdir()
    options = pyarrow.csv.WriteOptions(delimiter=";")
    pyarrow.csv.write_csv(table, tmp_path / "whole.csv", options)
    pyarrow.csv.write_csv(table.slice(0, 25), folder / "a.csv", options)
    pyarrow.csv.write_csv(table.slice(25), folder / "b.csv", options)
    cells, sample = Cells.of(Schema((*PEOPLE.columns, Column("note"))), {}), PositionedSample.fresh(Fraction(1, 2))
    expected = HERE.count(HERE.open(tmp_path / "whole.csv"), cells, sample)
    rows = spark_engine.open(folder, SourceOptions(format="csv"))
    assert rows.settings["delimiter"] == ";"
    assert same(spark_engine.count(rows, cells, sample), expected)


def test_problems_of_text_are_named_by_line_as_on_one_machine(spark_engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text('age,note\n41,a\nforty,"b\nc"\n-,d\n')
    schema = Schema((Column("age", type=Type.INTEGER, hierarchy=Flat(Numbers(0, 99))),))
    message = []
    for engine in (HERE, spark_engine):
        with pytest.raises(SourceInvalid) as caught:
            engine.marks(engine.open(path), schema, bytes(32))
        message.append(str(caught.value))
    assert message[0] == message[1]
    assert "column age: 2 cells are not whole numbers, in lines 3, 5" in message[1]
    path.write_text("age,note\n41,a\n42\n43,a,b\n")
    message = []
    for engine in (HERE, spark_engine):
        with pytest.raises(SourceInvalid) as caught:
            engine.marks(engine.open(path), schema, bytes(32))
        message.append(str(caught.value))
    assert message[0] == message[1]


def test_problems_of_files_are_named_by_row_as_on_one_machine(spark_engine: Engine, tmp_path: Path) -> None:
    folder = in_parts(people(), tmp_path / "people", 3)
    message = []
    for engine in (HERE, spark_engine):
        with pytest.raises(SourceInvalid) as caught:
            engine.marks(engine.open(folder), PEOPLE, bytes(32))
        message.append(str(caught.value))
    assert message[0] == message[1]


def test_a_file_that_changes_between_two_passes_is_refused(spark_engine: Engine, tmp_path: Path) -> None:
    folder = in_parts(people(), tmp_path / "people", 2)
    rows = spark_engine.open(folder)
    assert rows.rows == ROWS
    pq.write_table(
        people().slice(0, ROWS // 2).set_column(0, "sex", people()["sex"].slice(1, ROWS // 2)),
        folder / "part-0.parquet",
    )
    os.utime(folder / "part-0.parquet", (1, 1))
    with pytest.raises(SourceChanged):
        spark_engine.count(rows, Cells.of(PEOPLE, {}))


VISITS = pa.table({"visit": list(range(90)), "patient": [f"p{n % 9}" for n in range(90)], "ward": ["a", "b", "c"] * 30})
WARDS = Schema((Column("ward"), Column("patient", Role.IDENTIFIER)))


@pytest.fixture(scope="module")
def visits(spark_engine: SparkEngine) -> Any:
    """A view without an order."""
    frame = spark_engine.session.createDataFrame(VISITS.to_pylist())
    frame.createOrReplaceTempView("visits")
    return frame.repartition(3)


def test_a_table_is_sampled_by_its_ids(spark_engine: SparkEngine, visits: Any) -> None:
    engine = SparkEngine(spark_engine.session, "visit")
    cells, sample = Cells.of(WARDS, {}), PositionedSample.fresh(Fraction(1, 2))
    engine.marks(engine.open(visits), WARDS, bytes(32))
    retained = sample.of(np.arange(90, dtype=np.uint64))
    expected = HERE.count(HERE.open(VISITS.filter(pa.array(retained))), cells)
    for source in (visits, "::visits"):
        assert same(engine.count(engine.open(source), cells, sample), expected)


def test_a_table_without_ids_is_counted_and_not_sampled(spark_engine: SparkEngine, visits: Any) -> None:
    rows, cells = spark_engine.open(visits), Cells.of(WARDS, {})
    assert spark_engine.count(rows, cells).total == 90
    with pytest.raises(InvalidParameter, match="Name a unique id column"):
        spark_engine.marks(rows, WARDS, bytes(32))
    with pytest.raises(InvalidParameter, match="Name a unique id column"):
        spark_engine.count(rows, cells, PositionedSample.fresh(Fraction(1, 2)))


def test_ids_that_repeat_are_refused_before_the_charge(spark_engine: SparkEngine, visits: Any) -> None:
    engine = SparkEngine(spark_engine.session, "patient")
    with pytest.raises(SourceInvalid, match="does not identify rows"):
        engine.marks(engine.open(visits), WARDS, bytes(32))


def test_each_person_keeps_at_most_so_many_rows(spark_engine: SparkEngine, visits: Any) -> None:
    engine = SparkEngine(spark_engine.session, "visit")
    rows, cells = engine.open(visits), Cells.of(WARDS, {})
    chosen = engine.limit(rows, WARDS["patient"], 2, SystemCoins())
    assert engine.count(rows, cells, chosen).total == 18
    assert same(engine.count(rows, cells, chosen), engine.count(rows, cells, chosen))
    with pytest.raises(InvalidParameter, match="applied on the cluster"):
        chosen.at(0, 1)


def test_the_digest_is_of_the_rows_and_not_of_their_order(
    spark_engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_spark(monkeypatch)
    one = spark_engine.open(in_parts(people(), tmp_path / "one", 1))
    three = spark_engine.open(in_parts(people(), tmp_path / "three", 3))
    other = spark_engine.open(in_parts(people().slice(1), tmp_path / "other", 1))
    assert spark_engine.digest(one) == spark_engine.digest(three) != spark_engine.digest(other)


def test_the_digest_of_files_that_tasks_open_is_of_their_bytes_and_not_of_their_names(
    spark_engine: Engine, tmp_path: Path
) -> None:
    one, again = (spark_engine.open(in_parts(people(), tmp_path / name, 2)) for name in ("one", "again"))
    (tmp_path / "again" / "part-0.parquet").rename(tmp_path / "again" / "zuletzt.parquet")
    other = spark_engine.open(in_parts(people().slice(1), tmp_path / "other", 2))
    assert spark_engine.digest(one) == spark_engine.digest(again) != spark_engine.digest(other)


def test_tasks_open_files_only_where_arrow_and_spark_read_them_alike(spark_engine: SparkEngine, tmp_path: Path) -> None:
    def shared(name: str, **columns: pa.Array) -> bool:
        path = tmp_path / name / "part.parquet"
        path.parent.mkdir(parents=True)
        pq.write_table(pa.table(columns), path)
        return isinstance(spark_engine.open(tmp_path / name.partition("/")[0]).origin, SharedParquet)

    text = pa.array(["a", None])
    assert shared("text", zip=text, coded=text.dictionary_encode(), n=pa.array([1, 2]), day=pa.array([date.min] * 2))
    assert not shared("moments", at=pa.array([datetime(2020, 1, 1, tzinfo=UTC)] * 2))
    assert not shared("exact", pay=pa.array([Decimal("1.5")] * 2))
    assert not shared("bytes", raw=pa.array([b"a", b"b"]))
    assert not shared("by-year/year=2020", zip=text)
    pq.write_table(pa.table({"zip": text, "more": text}), tmp_path / "text" / "other.parquet")
    assert not isinstance(spark_engine.open(tmp_path / "text").origin, SharedParquet)


def test_a_file_that_another_replaces_between_two_passes_is_refused(spark_engine: Engine, tmp_path: Path) -> None:
    folder = in_parts(people(), tmp_path / "people", 2)
    rows, cells = spark_engine.open(folder), Cells.of(PEOPLE, {})
    before = (folder / "part-0.parquet").read_bytes()
    os.utime(folder / "part-0.parquet", ns=(1, 1))
    with pytest.raises(SourceChanged):
        spark_engine.count(rows, cells)
    (folder / "part-0.parquet").write_bytes(before + b" ")
    with pytest.raises(SourceChanged):
        spark_engine.count(rows, cells)
    (folder / "part-0.parquet").unlink()
    with pytest.raises(SourceUnreadable, match="every machine"):
        spark_engine.count(rows, cells)


@dataclass
class Longest:
    """How many rows there are, and how long the longest zip is."""

    rows: int = 0
    most: int = 0
    met: set[str] = field(default_factory=set)

    def add(self, batch: pa.RecordBatch) -> None:
        result = [value for value in batch.column("zip").to_pylist() if value is not None]
        self.rows += len(batch)
        self.most = max([self.most, *map(len, result)])
        self.met.update(result)

    def merge(self, other: Self) -> None:
        self.rows += other.rows
        self.most = max(self.most, other.most)
        self.met |= other.met


def test_summaries_of_tasks_come_together(
    spark_engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = spark_engine.open(in_parts(people(), tmp_path / "people", 3))
    learned = spark_engine.learn(rows, ["zip"], Longest)
    assert (learned.rows, learned.most, learned.met) == (ROWS, 3, {"021", "022", "0", "945"})


@pytest.mark.parametrize(
    ("source", "error", "gist"),
    [
        ("nowhere.parquet", SourceUnreadable, "does not exist"),
        ("::nowhere", SourceUnreadable, "nothing at this address"),
        ("file:///nowhere/at/all.parquet", SourceUnreadable, "nothing at this address"),
        (pa.table({"a": [1]}), SourceUnreadable, "nothing that Spark reads"),
    ],
)
def test_a_source_that_is_not_there_is_refused(
    spark_engine: Engine, source: object, error: type[IncrowdError], gist: str
) -> None:
    with pytest.raises(error, match=gist):
        spark_engine.open(source)


def test_a_file_that_is_not_what_it_says_is_refused(spark_engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "broken.parquet").write_text("Smith,02139\n" * 100)
    with pytest.raises(SourceUnreadable) as caught:
        spark_engine.open(tmp_path / "broken.parquet")
    assert "Smith" not in str(caught.value)


def test_a_column_that_is_not_there_is_named(spark_engine: Engine, tmp_path: Path) -> None:
    rows = spark_engine.open(in_parts(people(), tmp_path / "people", 1))
    with pytest.raises(UnknownColumn, match="Did you mean zip"):
        spark_engine.learn(rows, ["zips"], Longest)


def test_columns_in_the_names_of_folders_stay_text(spark_engine: Engine, tmp_path: Path) -> None:
    for zip_code in ("02139", "94305"):
        (tmp_path / "people" / f"zip={zip_code}").mkdir(parents=True)
        pq.write_table(pa.table({"age": [1, 2]}), tmp_path / "people" / f"zip={zip_code}" / "part.parquet")
    counts = spark_engine.count(spark_engine.open(tmp_path / "people"), Cells.of(Schema((Column("zip"),)), {}))
    assert counts.to_table().to_pylist() == [{"zip": "02139", "count": 2}, {"zip": "94305", "count": 2}]


def test_a_session_of_ours_leaves_nothing_in_the_folder_it_was_started_in(spark_engine: Engine) -> None:
    assert not {"spark-warehouse", "derby.log", "metastore_db", "artifacts"} & {
        path.name for path in Path.cwd().iterdir()
    }
