from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.core.domain import Categories, Dates, Numbers, Text, Type
from incrowd.core.hierarchy.calendar import Calendar, Period
from incrowd.core.hierarchy.intervals import Intervals
from incrowd.core.hierarchy.text import Prefix
from incrowd.core.hierarchy.tree import tree
from incrowd.core.recoding import Classes, Recoding
from incrowd.core.schema import Column
from incrowd.errors import InvalidParameter
from incrowd.quality.ladder import class_losses, mean_loss
from tests.core.hierarchy.examples import CASES

LISTED = [
    (name, level)
    for name, case in CASES.items()
    if case.hierarchy.members(0) is not None
    for level in range(case.hierarchy.height + 1)
]


def classes_of(column: Column, level: int) -> Classes:
    found = Recoding(column, level).classes
    assert found is not None
    return found


@pytest.mark.parametrize(("name", "level"), LISTED)
def test_losses_count_the_values_under_each_label_one_by_one(name: str, level: int) -> None:
    case = CASES[name]
    column = Column("c", type=case.type, hierarchy=case.hierarchy)
    values = case.hierarchy.labels(0)
    assert values is not None
    under = [case.hierarchy.generalize(value, level) for value in values]
    labels = case.hierarchy.labels(level)
    assert labels is not None
    slow = [(under.count(label) - 1) / (len(values) - 1) for label in labels]
    assert class_losses(classes_of(column, level))[: len(labels)] == pytest.approx(slow)


def test_a_value_loses_nothing_and_a_star_everything() -> None:
    sex = Column("sex", hierarchy=tree({"any": ["F", "M"]}))
    assert class_losses(classes_of(sex, 0)).tolist()[:2] == [0.0, 0.0]
    assert class_losses(classes_of(sex, 2)).tolist() == [1.0]


def test_what_is_missing_loses_nothing_and_what_is_outside_everything() -> None:
    age = Column("sex", hierarchy=tree({"any": ["F", "M"]}))
    assert class_losses(classes_of(age, 1)).tolist()[-2:] == [1.0, 0.0]


def test_decimals_are_measured_by_length() -> None:
    pay = Column("pay", type=Type.DECIMAL, hierarchy=Intervals(Numbers(0, 10, Type.DECIMAL), ("2.5", 5)))
    assert class_losses(classes_of(pay, 1)).tolist()[:4] == [0.25] * 4


def test_a_wide_range_is_counted_without_listing_it() -> None:
    pay = Column("pay", type=Type.INTEGER, hierarchy=Intervals(Numbers(0, 10**9 - 1), (10**8,)))
    assert class_losses(classes_of(pay, 1))[0] == pytest.approx((10**8 - 1) / (10**9 - 1))


def test_an_open_level_needs_the_values_that_occur() -> None:
    zips = Recoding(Column("zip", hierarchy=Prefix(Text(), (3,))), 1)
    met = Classes(zips, pa.array(["021", "943"]), has_other=True, has_missing=True)
    values = pa.array(["02139", "02138", "02139", "94305", None])
    assert class_losses(met, values).tolist() == [0.5, 0.0, 1.0, 0.0]
    with pytest.raises(InvalidParameter, match="not declared"):
        class_losses(met)


def test_days_without_bounds_are_counted_from_the_values_that_occur() -> None:
    born = Recoding(Column("born", type=Type.DATE, hierarchy=Calendar(Dates(), (Period.YEAR,))), 1)
    marks = born.column.hierarchy.lift(pa.array(["2020-01-01", "2021-01-01"]).cast(pa.date32()), 1)
    met = Classes(born, marks, has_other=True, has_missing=True)
    days = pa.array(["2020-05-01", "2020-06-01", "2020-07-01", "2021-01-01", "no day"])
    assert class_losses(met, days).tolist()[:2] == [2 / 3, 0.0]


def test_values_of_categories_are_taken_as_written() -> None:
    zips = Recoding(Column("zip", hierarchy=Prefix(Categories(("02139", "02138", "94305")), (3,))), 1)
    assert zips.classes is not None
    assert class_losses(zips.classes).tolist()[:2] == [0.5, 0.0]


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 50)), min_size=1, max_size=8), st.integers(0, 50))
def test_the_mean_is_over_rows_and_a_row_left_out_lost_everything(
    classes: list[tuple[float, int]], left_out: int
) -> None:
    each = [loss for loss, rows in classes for _ in range(rows)] + [1.0] * left_out
    found = mean_loss(np.array([loss for loss, _ in classes]), np.array([rows for _, rows in classes]), left_out)
    assert found == pytest.approx(sum(each) / len(each) if each else 0.0)
