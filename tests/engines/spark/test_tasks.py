"""What tasks do, without a cluster: what they send comes together as the local engine counts."""

from __future__ import annotations

import math
import pickle
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

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
from incrowd.engines.spark import tuples
from incrowd.engines.spark.count import Counting
from incrowd.engines.spark.limit import Limiting, limit
from incrowd.engines.spark.pieces import FilePieces, Piece
from incrowd.engines.spark.reading import Identified, StoredColumns
from incrowd.engines.spark.task import TaskFailed, Work, perform
from incrowd.errors import InvalidParameter
from incrowd.noise.positioned import PositionedSample
from incrowd.noise.system import SystemCoins
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
    found = pa.Table.from_batches([batch for task in tasks for batch in carried.run(iter(task))])
    if most is not None:
        found = found.take(pc.sort_indices(found, [("person", "ascending"), ("rank", "ascending")]))
        number: Counter[bytes] = Counter()
        keep = []
        for person, key in zip(found["person"].to_pylist(), found["key"].to_pylist(), strict=True):
            number[person] += 1
            keep.append(person is None or (number[person] <= most and key is not None))
        found = found.filter(pa.array(keep))
    summed = found.group_by(tuples.names(cells)).aggregate([("count", "sum")])
    summed = summed.rename_columns([*tuples.names(cells), "count"])
    without = pc.is_null(summed["key"])
    return tuples.counts_of(cells, summed.filter(pc.invert(without))), pc.sum(summed.filter(without)["count"]).as_py()


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
    kept: list[RowFilter] = [PositionedSample.fresh(Fraction(1, 2))] if data.draw(st.booleans()) else []
    pieces, tasks = partitions(table.select(list(cells.reads)), cuts, size)
    work = Counting(
        StoredColumns(cells.reads, pieces), cells, tuple(kept), CountingLimits(dense=2**8, buffered=3, held=4)
    )
    counts, read = together(work, tasks, cells)
    assert read == len(table)
    assert same(counts, LocalEngine().count(Batches(table), cells, *kept))


def test_keys_beyond_one_word_travel_whole() -> None:
    values = tuple(str(n) for n in range(300))
    columns = tuple(Column(f"c{n}", hierarchy=Flat(Categories(values))) for n in range(12))
    cells = Cells.of(Schema(columns), {})
    assert "key binary" in tuples.fields(cells)
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
    found = []
    for cuts, size in (([], 60), ([13, 14, 40], 4)):
        pieces, tasks = partitions(VISITS.select(["ward", "patient"]), cuts, size)
        work = Limiting(StoredColumns(("ward", "patient"), pieces), cells, chosen, ())
        found.append(together(work, tasks, cells, most)[0])
    assert same(*found)
    owned = Counter(who for who in VISITS["patient"].to_pylist() if who is not None)
    assert found[0].total == sum(min(most, rows) for rows in owned.values())


def test_a_person_is_limited_before_the_sample_is_drawn() -> None:
    """All of a person's rows are ranked, so a sampled row behind an unsampled one does not move up.

    Everybody has rows in this sample and outside of it: were it drawn before, one row of everybody would be counted.
    """
    cells = Cells.of(Schema((Column("ward"),)), {})
    sample = PositionedSample(Fraction(1, 2), bytes(range(32)), bytes(range(32)))
    patients, drawn = VISITS["patient"].to_numpy(zero_copy_only=False), sample.at(0, len(VISITS))
    shares = [drawn[patients == f"p{n}"].mean() for n in range(7)]
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
