from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from incrowd.core.cells import Cells
from incrowd.core.domain import Categories, Text
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.hierarchy.text import Prefix
from incrowd.core.schema import Column, Schema
from incrowd.engines.local.contributions import RowLimit
from incrowd.engines.local.counting import CountingLimits
from incrowd.engines.local.engine import LocalEngine
from incrowd.errors import IncrowdError, SourceChanged
from tests.coins import ScriptedSample
from tests.people import PEOPLE, levels, tables
from tests.tables import Batches, as_counter, tally, text_table

ENGINES = (
    LocalEngine(),
    LocalEngine(CountingLimits(dense=0, buffered=7, held=1000)),
    LocalEngine(CountingLimits(dense=0, buffered=3, held=4)),
    LocalEngine(CountingLimits(dense=2**12, buffered=3, held=4)),
)


@pytest.mark.parametrize("engine", ENGINES)
@settings(deadline=None, max_examples=60)
@given(table=tables(), chosen=levels(), size=st.integers(1, 12), data=st.data())
def test_counting_in_batches_is_counting_row_by_row(
    engine: LocalEngine, table: pa.Table, chosen: dict[str, int], size: int, data: st.DataObject
) -> None:
    cells = Cells.of(PEOPLE, chosen)
    retained = data.draw(st.none() | st.lists(st.booleans(), min_size=table.num_rows, max_size=table.num_rows))
    sample = [] if retained is None else [ScriptedSample(Fraction(1, 2), frozenset(np.flatnonzero(retained).tolist()))]
    expected = tally(cells, table, retained)
    counts = engine.count(Batches(table, size), cells, *sample)
    assert as_counter(counts) == expected
    at_least = data.draw(st.integers(1, 3))
    large = engine.count(Batches(table, size), cells, *sample, at_least=at_least)
    assert large.expand().equals(counts.at_least(at_least).expand())


@settings(deadline=None, max_examples=40)
@given(tables(), levels(), st.integers(1, 12))
def test_the_kind_of_array_makes_no_difference(table: pa.Table, chosen: dict[str, int], size: int) -> None:
    cells = Cells.of(PEOPLE, chosen)
    encoded = pa.table([column.dictionary_encode() for column in table.columns], names=table.column_names)
    expected = LocalEngine().count(Batches(table), cells)
    for other in (encoded, table.cast(pa.schema([(name, pa.large_string()) for name in table.column_names]))):
        assert LocalEngine().count(Batches(other, size), cells).expand().equals(expected.expand())


@settings(deadline=None, max_examples=40)
@given(tables(max_size=20), st.integers(1, 12))
def test_typed_columns_count_as_their_text_does(table: pa.Table, size: int) -> None:
    ages = [None if age in ("", "x", None) else int(age) for age in table.column("age").to_pylist()]
    pays = [float(pay) if pay not in ("?", None) else None for pay in table.column("pay").to_pylist()]
    days = [None if day in ("soon", None) else day for day in table.column("born").to_pylist()]
    clean = table
    for name, values in (("age", ages), ("pay", pays), ("born", days)):
        text = pa.array([None if value is None else str(value) for value in values], pa.string())
        clean = clean.set_column(clean.column_names.index(name), name, text)
    typed = clean.set_column(1, "age", pa.array(ages, pa.float64()))
    typed = typed.set_column(3, "born", pa.array(days, pa.string()).cast(pa.timestamp("s")))
    typed = typed.set_column(5, "pay", pa.array(pays, pa.float64()))
    cells = Cells.of(PEOPLE, {"born": 1})
    expected = LocalEngine().count(Batches(clean), cells)
    assert LocalEngine().count(Batches(typed, size), cells).expand().equals(expected.expand())


def test_rows_that_one_of_several_leaves_out_are_left_out() -> None:
    table = text_table({"zip": ["a", "b", "c", "d"]})
    cells = Cells.of(Schema((Column("zip"),)), {})
    sample = ScriptedSample(Fraction(1, 2), frozenset({0, 1, 2}))
    counts = LocalEngine().count(Batches(table, 3), cells, sample, RowLimit(np.array([False, True, True, True])))
    assert counts.expand().column("zip").to_pylist() == ["b", "c"]


def test_every_coin_is_asked_for_once_and_by_position() -> None:
    query: list[tuple[int, int]] = []

    @dataclass(frozen=True)
    class Watched:
        def at(self, start: int, stop: int) -> NDArray[np.bool_]:
            query.append((start, stop))
            return np.ones(stop - start, np.bool_)

    table = text_table({"zip": ["a"] * 7})
    LocalEngine().count(Batches(table, 3), Cells.of(Schema((Column("zip"),)), {}), Watched())
    assert query == [(0, 3), (3, 6), (6, 7)]


def test_a_mask_for_fewer_rows_is_refused() -> None:
    table = text_table({"zip": ["a"] * 7})
    with pytest.raises(SourceChanged, match="more rows than when they were first read"):
        LocalEngine().count(Batches(table), Cells.of(Schema((Column("zip"),)), {}), RowLimit(np.ones(6, np.bool_)))


def test_rows_are_counted_even_if_nothing_about_them_is_told() -> None:
    schema = Schema((Column("zip"), Column("sex", hierarchy=Flat(Categories(("F", "M"))))))
    table = text_table({"zip": ["a", "b", None], "sex": ["F", "X", None]})
    counts = LocalEngine().count(Batches(table, 2), Cells.of(schema, {"zip": 1, "sex": 1}))
    assert counts.to_table().to_pylist() == [{"zip": "*", "sex": "*", "count": 3}]


def test_classes_met_while_reading_may_become_many() -> None:
    schema = Schema(
        (Column("zip", hierarchy=Prefix(Text(), (4,))), Column("sex", hierarchy=Flat(Categories(("F", "M")))))
    )
    zips = [f"{number:05d}" for number in range(0, 40_000, 7)]
    table = text_table({"zip": zips, "sex": ["F", "M"] * (len(zips) // 2) + ["F"] * (len(zips) % 2)})
    cells = Cells.of(schema, {"zip": 1})
    expected = tally(cells, table)
    for engine in (LocalEngine(), LocalEngine(CountingLimits(dense=3000, buffered=500, held=600))):
        assert as_counter(engine.count(Batches(table, 100), cells)) == expected


def test_a_file_is_opened_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "zips.parquet"
    pq.write_table(pa.table({"zip": ["02139", "02138", "94305", None], "age": [1, 2, 3, 4]}), path)
    schema = Schema((Column("zip", hierarchy=Prefix(Text(), (3,))),))
    counts = LocalEngine().count(LocalEngine().open(str(path)), Cells.of(schema, {"zip": 1}))
    assert counts.to_table().to_pylist() == [
        {"zip": "021", "count": 2},
        {"zip": "943", "count": 1},
        {"zip": None, "count": 1},
    ]
    with pytest.raises(IncrowdError, match="no column zap"):
        LocalEngine().count(LocalEngine().open(str(path)), Cells.of(Schema((Column("zap"),)), {}))
