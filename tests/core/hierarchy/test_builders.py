from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.domain import Categories, Dates, Numbers, Text, Type
from incrowd.core.hierarchy.calendar import Calendar, Period
from incrowd.core.hierarchy.intervals import Cuts, Intervals, NumberGrid
from incrowd.core.hierarchy.text import Prefix, Redaction
from incrowd.core.hierarchy.tree import TreeHierarchy, ordered, tree
from incrowd.errors import InvalidParameter

DECIMALS = Numbers(0, 10, Type.DECIMAL)


def test_intervals_lie_within_one_another_or_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="width 8 do not consist of intervals of width 5"):
        Intervals(Numbers(0, 99), (5, 8))
    with pytest.raises(InvalidParameter, match="from narrow to wide"):
        Intervals(Numbers(0, 99), (10, 5))
    with pytest.raises(InvalidParameter, match="above 0"):
        Intervals(Numbers(0, 99), (0,))
    with pytest.raises(InvalidParameter, match="at least one width"):
        Intervals(Numbers(0, 99), ())
    with pytest.raises(InvalidParameter, match="whole widths"):
        Intervals(Numbers(0, 99), ("2.5",))
    with pytest.raises(InvalidParameter, match="whole origin"):
        Intervals(Numbers(0, 99), (5,), origin="0.5")


def test_intervals_begin_at_the_low_bound_and_reach_the_high_one() -> None:
    assert Intervals(Numbers(10, 20), (5,)).labels(1) == ("[10, 15)", "[15, 20)", "[20, 25)")
    assert Intervals(Numbers(10, 20), (5,), origin=8).labels(1) == ("[8, 13)", "[13, 18)", "[18, 23)")


def test_open_ends_say_so() -> None:
    assert Intervals(Numbers(10, 29), (10,), open_ends=True).labels(1) == ("< 20", ">= 20")
    assert Intervals(Numbers(10, 29), (100,), open_ends=True).labels(1) == ("any",)
    assert Intervals(Numbers(low=10), (10,), open_ends=True).generalize("15", 1) == "< 20"
    assert Intervals(Numbers(low=10), (10,), open_ends=True).generalize("25", 1) == "[20, 30)"


def test_a_tenth_is_where_it_is_written_to_be() -> None:
    tenths = Intervals(DECIMALS, ("0.1",))
    values = pa.array([0.1, 0.2, 0.3, 0.6, 0.7, math.nextafter(0.3, 0)])
    labels = tenths.names(tenths.lift(values, 1), 1).to_pylist()
    assert labels == ["[0.1, 0.2)", "[0.2, 0.3)", "[0.3, 0.4)", "[0.6, 0.7)", "[0.7, 0.8)", "[0.2, 0.3)"]


@settings(deadline=None)
@given(
    st.fractions(-3, 3, max_denominator=20),
    st.fractions(Fraction(1, 20), 5, max_denominator=20),
    st.lists(st.floats(-1e9, 1e9), max_size=30),
)
def test_a_grid_finds_the_last_point_not_above(origin: Fraction, width: Fraction, numbers: list[float]) -> None:
    grid = NumberGrid(origin, width, whole=False)
    found = grid.below(np.array(numbers, np.float64)).tolist()
    for number, point in zip(numbers, found, strict=True):
        step = grid.step(number)
        assert grid.point(step) <= number < grid.point(step + 1)
        assert point == grid.point(step)


@settings(deadline=None)
@given(st.integers(-(2**60), 2**60), st.integers(1, 2**60), st.lists(st.integers(-(2**62), 2**62)))
def test_a_grid_of_whole_numbers_never_wraps(origin: int, width: int, numbers: list[int]) -> None:
    found = NumberGrid(Fraction(origin), Fraction(width), whole=True).below(np.array(numbers, np.int64)).tolist()
    assert found == [origin + (number - origin) // width * width for number in numbers]


@pytest.mark.parametrize("number", [2.0**62, -(2.0**62), 1e17, 0.0, 5e-324])
@pytest.mark.parametrize("width", ["1e-300", "0.1", "1e300"])
def test_numbers_and_widths_of_any_size_have_an_interval(number: float, width: str) -> None:
    intervals = Intervals(Numbers(type=Type.DECIMAL), (width,))
    label = intervals.names(intervals.lift(pa.array([number]), 1), 1)[0].as_py()
    low, high = (float(end) for end in label.strip("[)").split(", "))
    assert low <= number <= high


def test_decimal_classes_weigh_what_they_span() -> None:
    leaves = Intervals(DECIMALS, (4,)).leaves(1)
    assert leaves is not None
    assert leaves.tolist() == [4.0, 4.0, 2.0]
    whole = Intervals(DECIMALS, (4,)).leaves(2)
    assert whole is not None
    assert whole.tolist() == [10.0]
    assert Intervals(DECIMALS, (4,)).leaves(0) is None
    cut = Cuts(DECIMALS, ((1, 7),)).leaves(1)
    assert cut is not None
    assert cut.tolist() == [1.0, 6.0, 3.0]
    assert Cuts(Numbers(), ((1, 7),)).leaves(1) is None


@pytest.mark.parametrize(
    ("points", "words"),
    [
        ((), "at least one point"),
        (((),), "at least one point"),
        (((65, 18),), "must grow"),
        (((0, 18),), "above the low bound"),
        (((18, 200),), "within the high"),
        ((("18.5",),), "must be whole"),
        (((18, 65), (18, 40)), "some, not all"),
        (((18, 65), (18, 65)), "some, not all"),
    ],
)
def test_cuts_that_cannot_be_are_refused(points: tuple[tuple[int, ...], ...], words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        Cuts(Numbers(0, 120), points)


@pytest.mark.parametrize(
    ("periods", "words"),
    [
        (("week", "year"), "a week can lie in two"),
        (("year", "month"), "month cannot stand above year"),
        (("month", "month"), "month cannot stand above month"),
        (("month", "week"), "week cannot stand above month"),
        (("fortnight",), "the calendar knows week, month"),
        ((), "at least one period"),
    ],
)
def test_periods_that_do_not_nest_are_refused(periods: tuple[Period, ...], words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        Calendar(Dates(), periods)


def test_the_first_days_of_the_calendar_have_a_decade() -> None:
    by_decade = Calendar(Dates(), (Period.DECADE,))
    values = pa.array(["0001-01-01", "0010-01-01", "9999-12-31"]).cast(pa.date32())
    assert by_decade.names(by_decade.lift(values, 1), 1).to_pylist() == ["0000s", "0010s", "9990s"]


def test_periods_of_bounded_dates_are_listed_in_order() -> None:
    dates = Calendar(Dates("2020-11-30", "2021-01-02"), (Period.MONTH, Period.YEAR))
    assert dates.labels(1) == ("2020-11", "2020-12", "2021-01")
    assert dates.labels(2) == ("2020", "2021")


def test_prefixes_become_shorter_or_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="4 cannot follow 3"):
        Prefix(Text(), (3, 4))
    with pytest.raises(InvalidParameter, match="1 or more"):
        Prefix(Text(), (3, 0))
    with pytest.raises(InvalidParameter, match="at least 2 characters"):
        Redaction(Text(), 1)


def test_prefixes_count_characters_not_bytes() -> None:
    assert Prefix(Text(), (2,)).lift(pa.array(["äöü", "𝄞𝄞𝄞"]), 1).to_pylist() == ["äö", "𝄞𝄞"]


def test_redaction_stars_what_arx_stars() -> None:
    zips = Redaction(Categories(("02139", "02138", "94305")), 5)
    assert [zips.labels(level) for level in range(6)] == [
        ("02139", "02138", "94305"),
        ("0213*", "9430*"),
        ("021**", "943**"),
        ("02***", "94***"),
        ("0****", "9****"),
        ("*",),
    ]


def test_a_tree_names_what_is_wrong_with_it() -> None:
    with pytest.raises(InvalidParameter, match="more than once: 'Paris'"):
        TreeHierarchy((("Paris", "France"), ("Paris", "Texas")))
    with pytest.raises(InvalidParameter, match="'Georgia' on level 1 lies both in 'Asia' and in 'America'"):
        TreeHierarchy((("Tbilisi", "Georgia", "Asia"), ("Atlanta", "Georgia", "America")))
    with pytest.raises(InvalidParameter, match="row 2 of the hierarchy has 1 levels and row 1 has 2"):
        TreeHierarchy((("Paris", "France"), ("Lyon",)))
    with pytest.raises(InvalidParameter, match="at least one value"):
        TreeHierarchy(())
    with pytest.raises(InvalidParameter, match="the values under 'France' must be a list"):
        tree({"France": "Paris"})
    with pytest.raises(InvalidParameter, match="at least one value"):
        tree({})


def test_a_star_on_top_is_not_put_there_twice() -> None:
    assert TreeHierarchy((("a", "x", "*"), ("b", "y", "*"))).height == 2
    assert TreeHierarchy((("a", "x"), ("b", "y"))).height == 2
    assert TreeHierarchy((("a", "*"),)).height == 1
    assert TreeHierarchy((("a", "all"), ("b", "all"))).height == 2


def test_labels_of_a_tree_come_in_the_order_of_its_rows() -> None:
    assert tree({"b": ["z", "y"], "a": ["x"]}).labels(1) == ("b", "a")
    assert tree(["x", "y"]).height == 1


def test_groups_that_do_not_nest_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="groups of 3 do not consist of groups of 2"):
        ordered(("a", "b", "c"), (2, 3))
    with pytest.raises(InvalidParameter, match="2 or more"):
        ordered(("a", "b", "c"), (1,))
