from __future__ import annotations

from collections import Counter
from datetime import date
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.csv as pcsv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.cells import Cells
from incrowd.core.counts import Counts
from incrowd.core.domain import Categories, Numbers, Text, Type
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.hierarchy.intervals import Intervals
from incrowd.core.hierarchy.text import Prefix, Redaction
from incrowd.core.schema import Column, Missing, Role, Schema
from incrowd.engines.local.engine import LocalEngine
from incrowd.errors import InvalidParameter
from tests.people import PEOPLE, levels, tables
from tests.tables import Batches, as_counter, tally, text_table

MEDICAL = Path(__file__).parents[2] / "examples" / "lecture" / "medical.csv"


def count(table: pa.Table, chosen: dict[str, int], schema: Schema = PEOPLE) -> Counts:
    return LocalEngine().count(Batches(table), Cells.of(schema, chosen))


@settings(deadline=None)
@given(tables(), levels(), st.data())
def test_rolling_up_is_counting_at_the_higher_levels(table: pa.Table, low: dict[str, int], data: st.DataObject) -> None:
    high = {c.name: data.draw(st.integers(low[c.name], c.hierarchy.height)) for c in PEOPLE.columns}
    risen, again = count(table, low).rollup(high), count(table, high)
    assert as_counter(risen) == as_counter(again)
    assert risen.expand().equals(again.expand())
    assert risen.levels == high


@settings(deadline=None)
@given(tables(), levels(), st.permutations(PEOPLE.names), st.integers(1, 6))
def test_a_marginal_is_a_count_of_fewer_columns(
    table: pa.Table, chosen: dict[str, int], names: list[str], some: int
) -> None:
    counts = count(table, chosen)
    places = [PEOPLE.names.index(name) for name in names[:some]]
    wanted: Counter[tuple[object, ...]] = Counter()
    for cell, times in as_counter(counts).items():
        wanted[tuple(cell[place] for place in places)] += times
    assert as_counter(counts.marginal(names[:some])) == wanted


@settings(deadline=None)
@given(tables(), levels(), st.integers(1, 4))
def test_cells_with_at_least_k_rows_are_kept(table: pa.Table, chosen: dict[str, int], k: int) -> None:
    counts = count(table, chosen)
    kept = counts.at_least(k)
    assert as_counter(kept) == Counter({cell: n for cell, n in as_counter(counts).items() if n >= k})
    assert kept.total == sum(as_counter(kept).values())


@settings(deadline=None)
@given(tables(), levels(), st.integers(1, 3), st.integers(1, 7))
def test_expanding_gives_every_row_once_in_order(table: pa.Table, chosen: dict[str, int], k: int, size: int) -> None:
    counts = count(table, chosen).at_least(k)
    rows = counts.expand()
    assert rows.num_rows == counts.total
    assert rows.equals(pa.Table.from_batches(counts.batches(size), schema=counts.schema))
    once = counts.to_table()
    repeated = [{n: row[n] for n in counts.names} for row in once.to_pylist() for _ in range(row["count"])]
    assert rows.to_pylist() == repeated


@settings(deadline=None)
@given(tables(), levels(), st.integers(1, 3))
def test_no_label_travels_that_no_row_has(table: pa.Table, chosen: dict[str, int], k: int) -> None:
    rows = count(table, chosen).at_least(k).expand()
    for column in rows.columns:
        if pa.types.is_dictionary(column.type):
            for chunk in column.chunks:
                assert set(chunk.dictionary.to_pylist()) == set(column.to_pylist()) - {None}


@settings(deadline=None)
@given(tables(), levels(), st.randoms(use_true_random=False))
def test_the_order_of_rows_leaves_no_trace(table: pa.Table, chosen: dict[str, int], random: Random) -> None:
    order = list(range(table.num_rows))
    random.shuffle(order)
    one, other = count(table, chosen), count(table.take(pa.array(order, pa.int64())), chosen)
    assert one.keys.tolist() == other.keys.tolist()
    assert [c.labels().to_pylist() for c in one.classes] == [c.labels().to_pylist() for c in other.classes]
    for mine, yours in zip(one.expand().columns, other.expand().columns, strict=True):
        assert mine.equals(yours)


def test_a_class_met_while_reading_is_forgotten_with_its_last_cell() -> None:
    schema = Schema((Column("zip", hierarchy=Prefix(Text(), (3,))),))
    counts = count(text_table({"zip": ["02139", "02138", "94305", None]}), {"zip": 1}, schema)
    assert counts.classes[0].labels().to_pylist() == ["021", "943", None]
    assert counts.at_least(2).classes[0].labels().to_pylist() == ["021"]


def test_numbers_sort_as_numbers_where_none_are_declared() -> None:
    schema = Schema((Column("n", type=Type.INTEGER), Column("d", type=Type.DECIMAL)))
    table = text_table({"n": ["10", "9", "-3", None], "d": ["0.5", "10", "9", "1e-3"]})
    rows = count(table, {}, schema).expand()
    assert rows.column("n").to_pylist() == [-3, 9, 10, None]
    by_decimal = count(table, {"n": 1}, schema).expand()
    assert by_decimal.column("d").to_pylist() == [0.001, 0.5, 9.0, 10.0]


def test_released_types_are_those_declared() -> None:
    schema = Schema(
        (
            Column("n", type=Type.INTEGER, hierarchy=Intervals(Numbers(0, 9), (5,))),
            Column("b", type=Type.BOOLEAN, missing=Missing.DROP),
            Column("d", type=Type.DATE),
            Column("t"),
        )
    )
    table = text_table({"n": ["7", ""], "b": ["yes", "no"], "d": ["2020-01-31", ""], "t": ["x", None]})
    rows = count(table, {}, schema).expand()
    assert rows.schema.types == [pa.int64(), pa.bool_(), pa.date32(), pa.dictionary(pa.int32(), pa.string())]
    assert rows.to_pylist() == [
        {"n": 7, "b": True, "d": date(2020, 1, 31), "t": "x"},
        {"n": None, "b": False, "d": None, "t": None},
    ]
    labels = count(table, {"n": 1}, schema).expand()
    assert labels.column("n").to_pylist() == [">= 5", None]


def test_nothing_is_a_valid_count() -> None:
    empty = count(text_table({name: [] for name in PEOPLE.names}), {})
    assert (len(empty), empty.total) == (0, 0)
    assert empty.expand().num_rows == 0
    full = count(text_table({name: [None] for name in PEOPLE.names}), {})
    assert empty.schema == full.schema
    assert empty.rollup({"zip": 3}).to_table().num_rows == 0
    assert empty.at_least(5).marginal(["age"]).total == 0


def test_what_was_not_counted_cannot_be_asked_for() -> None:
    counts = count(text_table({name: [None] for name in PEOPLE.names}), {"age": 1})
    with pytest.raises(InvalidParameter, match="'height' was not counted"):
        counts.marginal(["height"])
    with pytest.raises(InvalidParameter, match="'height' was not counted"):
        counts.rollup({"height": 1})
    with pytest.raises(InvalidParameter, match="at least one column"):
        counts.marginal([])
    with pytest.raises(InvalidParameter, match="level 0 is finer"):
        counts.rollup({"age": 0})


def test_columns_beyond_one_word_roll_up_as_others_do() -> None:
    schema = Schema(tuple(Column(f"c{place}", hierarchy=Flat(Categories(tuple("abcdef")))) for place in range(30)))
    table = text_table({column.name: ["a", "f", None, "a"] for column in schema.columns})
    counts = count(table, {}, schema)
    assert counts.layout.dtype.kind == "S"
    assert as_counter(counts) == tally(Cells.of(schema, {}), table)
    assert counts.rollup({f"c{place}": 1 for place in range(1, 30)}).to_table().column("count").to_pylist() == [2, 1, 1]
    assert counts.marginal(["c29"]).to_table().to_pylist()[0] == {"c29": "a", "count": 2}


def medical() -> tuple[Schema, pa.Table]:
    text = pcsv.ConvertOptions(
        column_types=dict.fromkeys(("ethnicity", "birth", "gender", "zip", "condition"), "string")
    )
    table = pcsv.read_csv(MEDICAL, convert_options=text)
    quasi = [
        Column("ethnicity", Role.QUASI, hierarchy=Flat(Categories(("Black", "White")))),
        Column("birth", Role.QUASI, Type.INTEGER, Flat(Numbers(1900, 2020))),
        Column("gender", Role.QUASI, hierarchy=Flat(Categories(("F", "M")))),
        Column("zip", Role.QUASI, hierarchy=Redaction(Text(), 5)),
    ]
    return Schema((*quasi, Column("condition", Role.SENSITIVE))), table


@pytest.mark.parametrize(("chosen", "smallest"), [((0, 0, 0, 1, 0), 2), ((0, 0, 1, 0, 0), 1), ((0, 0, 1, 1, 0), 2)])
def test_the_lecture_s_generalizations_are_2_anonymous_or_not(chosen: tuple[int, ...], smallest: int) -> None:
    schema, table = medical()
    counts = count(table, dict(zip(schema.names, chosen, strict=True)), schema)
    assert counts.total == 11
    assert counts.marginal(["ethnicity", "birth", "gender", "zip"]).counts.min() == smallest


def test_the_lecture_s_table_is_homogeneous_where_it_says() -> None:
    schema, table = medical()
    given = count(table, {"zip": 1}, schema).marginal(["ethnicity", "birth", "gender", "condition"])
    women = {row["condition"] for row in given.to_table().to_pylist() if row["birth"] == 1965 and row["gender"] == "F"}
    assert women == {"hypertension"}
    conditions = count(table, {}, schema).marginal(["condition"]).to_table().to_pylist()
    assert {row["condition"]: row["count"] for row in conditions} == {
        "chest pain": 5, "hypertension": 2, "obesity": 2, "short breath": 2,
    }  # fmt: skip
