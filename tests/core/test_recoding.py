from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.domain import Categories, Dates, Numbers, Text, Type
from incrowd.core.hierarchy.calendar import Calendar, Period
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.hierarchy.intervals import Intervals
from incrowd.core.hierarchy.text import Prefix
from incrowd.core.hierarchy.tree import TreeHierarchy, tree
from incrowd.core.recoding import LEFT_OUT, Recoding
from incrowd.core.schema import Column, Missing, Outside
from incrowd.engines.local.encoding import Codebook
from incrowd.errors import InvalidParameter
from tests.core.hierarchy.examples import CASES, Case
from tests.tables import LEFT_OUT as ORACLE_LEFT_OUT
from tests.tables import released

_ODD = st.none() | st.sampled_from(("", "  ", "x", "other", "2020-02-30", "1e400", "007", "7.0"))


def labels_of(recoding: Recoding, array: pa.Array | pa.ChunkedArray) -> list[object]:
    """What the codes of an array stand for."""
    book = Codebook(recoding) if recoding.classes is None else None
    codes = recoding.codes(array, book)
    classes, kept = (recoding.classes, np.arange(2**16)) if book is None else book.classes()
    assert classes is not None
    labels = classes.labels().to_pylist()
    return [ORACLE_LEFT_OUT if code == LEFT_OUT else labels[kept[code]] for code in codes]


def columns_of(case: Case) -> list[Column]:
    """The same column with every rule for what does not fit."""
    fills = {Type.INTEGER: "30", Type.DECIMAL: "2.5", Type.DATE: "2021-01-05", Type.BOOLEAN: "true"}
    fill = fills.get(case.type, "Paris")
    rules: list[tuple[str, Outside | None]] = [
        (Missing.CLASS, None),
        (Missing.CLASS, Outside.OTHER),
        (Missing.DROP, Outside.OTHER),
        (Missing.CLASS, Outside.DROP),
        (fill, Outside.OTHER),
        (fill, None),
    ]
    known = [rule for rule in rules if rule[0] != fill or case.hierarchy.generalize(fill, 0) is not None]
    return [Column("x", type=case.type, hierarchy=case.hierarchy, missing=rule[0], outside=rule[1]) for rule in known]


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in CASES.items()])
@settings(deadline=None, max_examples=30)
@given(data=st.data())
def test_rows_become_what_the_rules_say_one_by_one(case: Case, data: st.DataObject) -> None:
    texts = data.draw(st.lists(case.texts | _ODD, max_size=15))
    column = data.draw(st.sampled_from(columns_of(case)))
    level = data.draw(st.integers(0, case.hierarchy.height))
    recoding, array = Recoding(column, level), pa.array(texts, pa.string())
    wanted = [released(column, level, text) for text in texts]
    assert labels_of(recoding, array) == wanted
    assert labels_of(recoding, array.dictionary_encode()) == wanted


@pytest.mark.parametrize(
    ("column", "level", "array", "wanted"),
    [
        (Column("x", type=Type.INTEGER, hierarchy=Intervals(Numbers(0, 99), (10,))), 1,
         pa.array([5.0, float("nan"), 7.5, 1e9, -1.0]), ["< 10", None, None, ">= 90", "< 10"]),
        (Column("x", type=Type.INTEGER, hierarchy=Intervals(Numbers(0, 99), (10,))), 1,
         pa.array([5, None, 100], pa.uint8()), ["< 10", None, ">= 90"]),
        (Column("x", type=Type.INTEGER, hierarchy=TreeHierarchy((("1", "low"), ("2", "high")))), 1,
         pa.array([1, 2, 3, None]), ["low", "high", "other", None]),
        (Column("x", type=Type.DECIMAL, hierarchy=Intervals(Numbers(type=Type.DECIMAL), ("0.1",))), 1,
         pa.array([Decimal("0.30"), None]), ["[0.3, 0.4)", None]),
        (Column("x", hierarchy=Prefix(Text(), (3,))), 1,
         pa.array([2139.0, None]), ["213", None]),
        (Column("x", type=Type.DATE, hierarchy=Calendar(Dates(), (Period.YEAR,))), 1,
         pa.array([datetime(2020, 1, 1, 5), None]), ["2020", None]),  # noqa: DTZ001
        (Column("x", type=Type.DATE, hierarchy=Calendar(Dates("2019-01-01", "2020-12-31"), (Period.YEAR,))), 1,
         pa.array([date(2031, 1, 1), None]), ["2020 or later", None]),
        (Column("x", type=Type.BOOLEAN), 0, pa.array([True, None]), ["true", None]),
        (Column("x", type=Type.BOOLEAN), 0, pa.array([1, 0, 7]), ["true", "false", None]),
        (Column("x", type=Type.BOOLEAN, outside=Outside.OTHER), 0, pa.array([1, 0, 7]), ["true", "false", "other"]),
        (Column("x"), 0, pa.nulls(2), [None, None]),
        (Column("x", type=Type.INTEGER), 0, pa.DictionaryArray.from_arrays(pa.array([1, 0, None]), pa.array([7, 8])),
         ["8", "7", None]),
    ],
)  # fmt: skip
def test_every_kind_of_array_is_recoded(column: Column, level: int, array: pa.Array, wanted: list[str | None]) -> None:
    assert labels_of(Recoding(column, level), array) == wanted


def test_chunks_make_no_difference() -> None:
    zips = Recoding(Column("zip", hierarchy=Prefix(Text(), (2,))), 1)
    parts = [pa.array(["02139", None]), pa.array(["94305"]), pa.array([], pa.string())]
    assert labels_of(zips, pa.chunked_array(parts)) == ["02", None, "94"]
    assert labels_of(zips, pa.chunked_array([part.dictionary_encode() for part in parts])) == ["02", None, "94"]


def test_a_value_outside_joins_a_declared_class_named_other() -> None:
    places = tree({"Europe": ["Paris", "other"], "Asia": ["Kyoto"]})
    column = Column("x", hierarchy=places)
    assert labels_of(Recoding(column, 0), pa.array(["Oslo"])) == ["other"]
    assert labels_of(Recoding(column, 1), pa.array(["Oslo"])) == ["Europe"]
    assert Recoding(column, 0).classes.labels().to_pylist() == ["Paris", "other", "Kyoto", None]  # type: ignore[union-attr]


def test_a_value_outside_joins_other_from_the_level_on_where_it_is_declared() -> None:
    kinds = Column("x", hierarchy=TreeHierarchy((("a", "other", "rest"), ("b", "good", "best"))))
    assert [labels_of(Recoding(kinds, level), pa.array(["z"]))[0] for level in range(4)] == [
        "other",
        "other",
        "rest",
        "*",
    ]
    assert len(Recoding(kinds, 1).classes or ()) == 3


def test_at_the_top_nothing_is_told_apart_and_nothing_need_be_read() -> None:
    column = Column("x", hierarchy=Flat(Categories(("a",))))
    assert labels_of(Recoding(column, 1), pa.array(["a", "z", None])) == ["*", "*", "*"]
    assert not Recoding(column, 1).needs_rows
    assert Recoding(column, 0).needs_rows
    dropping = Column("x", hierarchy=Flat(Categories(("a",))), missing=Missing.DROP)
    assert Recoding(dropping, 1).needs_rows
    assert labels_of(Recoding(dropping, 1), pa.array(["a", None])) == ["*", ORACLE_LEFT_OUT]


def test_unreadable_values_are_found_for_the_validating_pass() -> None:
    recoding = Recoding(Column("x", type=Type.INTEGER), 1)
    texts = pa.array(["1", "x", None, "", "2.5"])
    for array in (texts, texts.dictionary_encode()):
        assert recoding.unreadable(array).tolist() == [False, True, False, False, True]
    assert recoding.unreadable(pa.array([1.0, 1.5])).tolist() == [False, True]


def test_an_open_level_has_no_codes_of_its_own() -> None:
    zips = Column("zip", hierarchy=Prefix(Text(), (3,)))
    assert Recoding(zips, 1).classes is None
    with pytest.raises(InvalidParameter, match="'zip' at level 1 cannot be listed"):
        Recoding(zips, 1).codes(pa.array(["02139"]))
    with pytest.raises(InvalidParameter, match=r"'zip' has the levels 0 .* to 2 .* not 3"):
        Recoding(zips, 3)


def test_the_values_of_level_0_have_the_declared_type() -> None:
    bounded = Flat(Numbers(0, 1))
    cases = [
        (Column("x", type=Type.INTEGER, hierarchy=bounded), [0, 1, None]),
        (Column("x", type=Type.INTEGER, hierarchy=bounded, missing=Missing.DROP), [0, 1]),
        (Column("x", type=Type.INTEGER, hierarchy=bounded, outside=Outside.OTHER), ["0", "1", "other", None]),
        (Column("x", type=Type.BOOLEAN), [False, True, None]),
        (Column("x", type=Type.BOOLEAN, outside=Outside.OTHER), ["false", "true", "other", None]),
        (Column("x", type=Type.DATE, hierarchy=Flat(Dates("2020-01-01", "2020-01-01"))), ["any", None]),
        (
            Column("x", type=Type.DATE, hierarchy=Flat(Dates("2020-01-01", "2020-01-01")), outside=Outside.DROP),
            [date(2020, 1, 1), None],
        ),
        (Column("x", type=Type.INTEGER, hierarchy=TreeHierarchy((("5", "a"),)), outside=Outside.DROP), [5, None]),
        (Column("x", type=Type.DECIMAL, hierarchy=TreeHierarchy((("0.5", "a"),)), outside=Outside.DROP), [0.5, None]),
    ]
    for column, values in cases:
        classes = Recoding(column, 0).classes
        assert classes is not None
        assert classes.values().to_pylist() == values


def test_classes_rise_but_never_fall() -> None:
    ages = Column("age", type=Type.INTEGER, hierarchy=Intervals(Numbers(0, 39), (10, 20)), outside=Outside.OTHER)
    fine = Recoding(ages, 1).classes
    assert fine is not None
    coarse, table = fine.rise(2)
    assert coarse.labels().to_pylist() == ["[0, 20)", "[20, 40)", "other", None]
    assert table.tolist() == [0, 0, 1, 1, 2, 3]
    assert fine.rise(3)[1].tolist() == [0] * 6
    with pytest.raises(InvalidParameter, match="level 0 is finer"):
        fine.rise(0)
