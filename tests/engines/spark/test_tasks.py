"""What tasks do, without a cluster: what they send comes together as the local engine counts."""

from __future__ import annotations

import errno
import math
import os
import pickle
import sys
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.cells import Cells
from incrowd.core.counts import Counts
from incrowd.core.domain import Categories
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.table import RowFilter
from incrowd.engines.local.counting import CountingLimits
from incrowd.engines.local.engine import LocalEngine
from incrowd.engines.settings import Spark
from incrowd.engines.spark.count import CellColumns, Counting, Limiting
from incrowd.engines.spark.limit import limit
from incrowd.engines.spark.places import FilePieces, Piece
from incrowd.engines.spark.rows import Identified, StoredColumns
from incrowd.engines.spark.session import require_java, require_pyspark
from incrowd.engines.spark.task import TaskFailed, Work, explained, explanation, perform, safe_words
from incrowd.engines.spark.workers import check_versions, python_version
from incrowd.errors import (
    ClusterUnavailable,
    IncrowdError,
    InvalidParameter,
    JobFailed,
    PackageMissing,
    SourceChanged,
    SourceUnreadable,
)
from incrowd.noise.positioned import PositionedSample
from incrowd.noise.system import SystemCoins
from tests import spark
from tests.people import PEOPLE, levels, tables
from tests.statistics.alarm import FALSE_ALARM, binomial_p_value
from tests.tables import Batches


def sent(table: pa.Table, stamp: int, start: int) -> pa.RecordBatch:
    """Return rows of a file as Spark hands them to a task: values, the stamp of the file, the place in it."""
    places = np.arange(start, start + len(table))
    whole = table.append_column("stamp", pa.array(np.full(len(table), stamp))).append_column("row", pa.array(places))
    return whole.combine_chunks().to_batches()[0] if len(table) else pa.RecordBatch.from_pylist([], whole.schema)


def partitions(table: pa.Table, cuts: list[int], size: int) -> tuple[FilePieces, list[list[pa.RecordBatch]]]:
    """Cut rows into files, and these into partitions of few rows; the last file comes first, as it may."""
    bounds = [0, *sorted(cuts), len(table)]
    files = [table.slice(start, stop - start) for start, stop in pairwise(bounds)]
    pieces = FilePieces.of(Piece(100 + n, f"file:/data/{n:03}.parquet", len(file)) for n, file in enumerate(files))
    tasks = [
        [sent(file.slice(start, size), 100 + n, start)]
        for n, file in enumerate(files)
        for start in range(0, max(len(file), 1), size)
    ]
    return pieces, tasks[::-1]


def together(
    work: Work, tasks: list[list[pa.RecordBatch]], cells: Cells, most: int | None = None
) -> tuple[Counts, int]:
    """Sum up what tasks send, as the cluster does; return the counts and how many rows were read."""
    carried: Work = pickle.loads(pickle.dumps(work))
    result = pa.Table.from_batches([batch for task in tasks for batch in carried.run(iter(task))])
    if most is not None:
        result = result.take(pc.sort_indices(result, [("person", "ascending"), ("rank", "ascending")]))
        number: Counter[bytes] = Counter()
        keep = []
        for person, key in zip(result["person"].to_pylist(), result["key"].to_pylist(), strict=True):
            number[person] += 1
            keep.append(person is None or (number[person] <= most and key is not None))
        result = result.filter(pa.array(keep))
    summed = result.group_by(CellColumns(cells).names).aggregate([("count", "sum")])
    summed = summed.rename_columns([*CellColumns(cells).names, "count"])
    without = pc.is_null(summed["key"])
    return CellColumns(cells).counts(summed.filter(pc.invert(without))), pc.sum(summed.filter(without)["count"]).as_py()


def same(one: Counts, other: Counts) -> bool:
    return (
        np.array_equal(one.keys, other.keys)
        and np.array_equal(one.counts, other.counts)
        and one.schema == other.schema
        and all(a.marks.equals(b.marks) and len(a) == len(b) for a, b in zip(one.classes, other.classes, strict=True))
    )


@settings(deadline=None, max_examples=60)
@given(table=tables(), chosen=levels(), size=st.integers(1, 7), data=st.data())
def test_partial_counts_come_together_as_one_process_counts(
    table: pa.Table, chosen: dict[str, int], size: int, data: st.DataObject
) -> None:
    cells = Cells.of(PEOPLE, chosen)
    cuts = data.draw(st.lists(st.integers(0, table.num_rows), max_size=3))
    retained: list[RowFilter] = [PositionedSample.fresh(Fraction(1, 2))] if data.draw(st.booleans()) else []
    pieces, tasks = partitions(table.select(list(cells.reads)), cuts, size)
    work = Counting(
        StoredColumns(cells.reads, pieces), cells, tuple(retained), CountingLimits(dense=2**8, buffered=3, held=4)
    )
    counts, read = together(work, tasks, cells)
    assert read == len(table)
    assert same(counts, LocalEngine().count(Batches(table), cells, *retained))


def test_keys_beyond_one_word_travel_whole() -> None:
    values = tuple(str(n) for n in range(300))
    columns = tuple(Column(f"c{n}", hierarchy=Flat(Categories(values))) for n in range(12))
    cells = Cells.of(Schema(columns), {})
    assert "key binary" in CellColumns(cells).fields
    rows = [[values[(7 * row + n * n) % 300] for row in range(50)] for n in range(12)]
    table = pa.table({f"c{n}": row for n, row in enumerate(rows)})
    pieces, tasks = partitions(pa.concat_tables([table, table]), [20, 70], 9)
    counts, _ = together(Counting(StoredColumns(cells.reads, pieces), cells, ()), tasks, cells)
    assert same(counts, LocalEngine().count(Batches(pa.concat_tables([table, table])), cells))


PATIENT = Column("patient", Role.IDENTIFIER)
VISITS = pa.table(
    {
        "patient": [None if n % 11 == 0 else f"p{n % 7}" for n in range(60)],
        "ward": [f"w{n % 5}" for n in range(60)],
    }
)


@pytest.mark.parametrize("most", [1, 3, 100])
def test_each_person_keeps_so_many_rows_however_they_are_partitioned(most: int) -> None:
    cells = Cells.of(Schema((Column("ward"),)), {})
    chosen = limit(PATIENT, most, SystemCoins())
    result = []
    for cuts, size in (([], 60), ([13, 14, 40], 4)):
        pieces, tasks = partitions(VISITS.select(["ward", "patient"]), cuts, size)
        work = Limiting(StoredColumns(("ward", "patient"), pieces), cells, chosen, ())
        result.append(together(work, tasks, cells, most)[0])
    assert same(*result)
    owned = Counter(who for who in VISITS["patient"].to_pylist() if who is not None)
    assert result[0].total == sum(min(most, rows) for rows in owned.values())


def test_a_person_is_limited_before_the_sample_is_drawn() -> None:
    """All of a person's rows are ranked, so a sampled row behind an unsampled one does not move up.

    Everybody has rows in this sample and outside of it: were it drawn before, one row of everybody would be counted.
    """
    cells = Cells.of(Schema((Column("ward"),)), {})
    sample = PositionedSample(Fraction(1, 2), bytes(range(32)), bytes(range(32)))
    patients, sampled = VISITS["patient"].to_numpy(zero_copy_only=False), sample.at(0, len(VISITS))
    shares = [sampled[patients == f"p{n}"].mean() for n in range(7)]
    assert min(shares) > 0
    pieces, tasks = partitions(VISITS.select(["ward", "patient"]), [20], 9)
    reading = StoredColumns(("ward", "patient"), pieces)
    totals = []
    for _ in range(20):
        chosen = limit(PATIENT, 1, SystemCoins())
        totals.append(together(Limiting(reading, cells, chosen, (sample,)), tasks, cells, 1)[0].total)
    assert max(totals) <= 7
    assert min(totals) < 7
    assert math.prod(shares) ** 20 < FALSE_ALARM  # twenty choices of one row of everybody, and all in the sample


def test_the_row_a_person_keeps_is_a_uniform_choice() -> None:
    cells = Cells.of(Schema((Column("ward"),)), {})
    table = pa.table({"ward": ["a", "b", "c", "d"], "patient": ["p"] * 4})
    pieces, tasks = partitions(table, [], 4)
    rounds, met = 400, Counter[str]()
    for _ in range(rounds):
        work = Limiting(StoredColumns(("ward", "patient"), pieces), cells, limit(PATIENT, 1, SystemCoins()), ())
        met[together(work, tasks, cells, 1)[0].to_table()["ward"][0].as_py()] += 1
    assert all(binomial_p_value(met[ward], rounds, 0.25) > FALSE_ALARM / 4 for ward in "abcd")


def test_what_travels_names_nobody() -> None:
    """What travels is sixteen bytes of a cipher: ten that spell a name are among them with less than 2^(−64)."""
    names = [None if who is None else f"Smith, {who} " for who in VISITS["patient"].to_pylist()]
    pieces, tasks = partitions(pa.table({"ward": VISITS["ward"], "patient": names}), [], 60)
    cells = Cells.of(Schema((Column("ward"),)), {"ward": 1})
    work = Limiting(StoredColumns(("ward", "patient"), pieces), cells, limit(PATIENT, 1, SystemCoins()), ())
    persons = {who for batch in work.run(iter(tasks[0])) for who in batch.column("person").to_pylist()}
    assert len(persons - {None}) == 7
    assert all(len(who) == 16 and str(name).encode() not in who for who in persons - {None} for name in names)


def test_rows_without_a_place_have_no_coin() -> None:
    cells = Cells.of(Schema((Column("ward"),)), {})
    batch = VISITS.select(["ward"]).combine_chunks().to_batches()[0]
    work = Counting(Identified(("ward",), has_id=False), cells, (PositionedSample.fresh(Fraction(1, 2)),))
    with pytest.raises(InvalidParameter, match="name a unique id column"):
        list(work.run(iter([batch])))


class Stumbling:
    """Work that fails with a value in its words."""

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        raise ValueError("Smith, 02139")


def test_an_error_on_a_worker_says_nothing_of_the_value_it_stumbled_over() -> None:
    import zlib

    with pytest.raises(TaskFailed) as caught:
        list(perform(zlib.compress(pickle.dumps(Stumbling())), iter([])))
    assert "Smith" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


needs_spark = pytest.mark.skipif(
    spark.missing() is not None and os.environ.get("CI") != "true", reason=spark.missing() or ""
)


@pytest.mark.parametrize(
    ("text", "kind", "gist"),
    [
        ("java.io.IOException: No space left on device", JobFailed, "disk of a worker is full"),
        ("java.lang.OutOfMemoryError: Java heap space", JobFailed, "out of memory"),
        ("ExecutorLostFailure (executor 3 exited caused by ...) exit code 137", JobFailed, "out of memory"),
        ("ExecutorLostFailure (executor 3 exited caused by one of the running tasks)", JobFailed, "workers were lost"),
        ("... is bigger than spark.driver.maxResultSize (1024.0 MiB)", JobFailed, "more cells than the driver takes"),
        ("[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.8", ClusterUnavailable, "another Python"),
        ("ModuleNotFoundError: No module named 'pyarrow'", ClusterUnavailable, "lacks Python or a package"),
        ("[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error", SourceChanged, "disappeared"),
        ("[PATH_NOT_FOUND] Path does not exist: file:/x", SourceUnreadable, "nothing at this address"),
        ("[FAILED_READ_FILE.NO_HINT] Encountered error while reading", SourceUnreadable, "cannot be read in"),
        ("something entirely new about Smith", JobFailed, "Its logs tell the reason"),
    ],
)
def test_a_failure_is_told_in_our_own_words(text: str, kind: type[IncrowdError], gist: str) -> None:
    error = explanation(f"{text}\nrow 17: Smith, 02139\n\tat org.apache.spark.Executor.run(Executor.scala:906)")
    assert type(error) is kind
    assert gist in str(error)
    assert "Smith" not in str(error)
    assert "scala" not in str(error)


def test_a_full_disk_and_an_empty_memory_of_a_worker_are_told_apart() -> None:
    assert "disk" in str(explanation(safe_words(OSError(errno.ENOSPC, "Smith"))))
    assert "memory" in str(explanation(safe_words(MemoryError("Smith"))))


def test_a_forged_mark_raises_none_of_our_other_errors() -> None:
    assert type(explanation("incrowd-task<annotations:>")) is JobFailed


def test_an_error_of_spark_is_not_attached_to_ours() -> None:
    with pytest.raises(ClusterUnavailable) as caught, explained():
        raise ConnectionRefusedError("Smith, 02139")
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_our_own_errors_pass_as_they_are() -> None:
    with pytest.raises(SourceChanged, match="as it is"), explained():
        raise SourceChanged("as it is")


def versions(**other: str | None) -> dict[str, str | None]:
    from incrowd import __version__

    pyspark = pytest.importorskip("pyspark")
    same = {"python": python_version(), "pyspark": pyspark.__version__, "incrowd": __version__}
    return {**same, "numpy": "2.4.0", "pyarrow": "26.0.0", "cryptography": "50.0.0", **other}


@pytest.mark.parametrize(
    ("other", "gist"),
    [
        ({"python": "3.8"}, "a worker has Python 3.8"),
        ({"pyspark": "3.5.1"}, "a worker has PySpark 3.5"),
        ({"incrowd": None}, "a worker has incrowd (none)"),
        ({"pyarrow": "9.0.0"}, "a worker has pyarrow 9.0.0, and tasks need 18"),
        ({"cryptography": None}, "a worker has cryptography (none)"),
    ],
)
def test_workers_with_other_versions_are_refused_by_name(other: dict[str, str | None], gist: str) -> None:
    check_versions([versions()])
    with pytest.raises(ClusterUnavailable) as caught:
        check_versions([versions(), versions(**other)])
    assert gist in str(caught.value)


def test_without_java_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ClusterUnavailable, match="Java 17 or later, and none was found"):
        require_java()


def test_an_old_java_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ClusterUnavailable, match="Java 11 is found"):
        require_java()


def test_without_pyspark_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(PackageMissing, match=r"incrowd\[spark\]"):
        require_pyspark()


@needs_spark
@pytest.mark.parametrize("settings", [Spark(master="spark://127.0.0.1:9"), Spark(remote="sc://127.0.0.1:9")])
def test_a_cluster_that_does_not_answer_is_given_up_soon(settings: Spark) -> None:
    from incrowd.engines.spark.engine import spark_engine

    with pytest.raises(ClusterUnavailable, match="nobody answers at"), spark_engine(settings):
        pass
