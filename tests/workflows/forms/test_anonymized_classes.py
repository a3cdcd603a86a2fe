"""The second count of every criterion agrees with the first, though it shares no code with it."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.domain import Type
from incrowd.criteria.distances import equal, ordered
from incrowd.criteria.groups import Groups
from incrowd.criteria.risk import unique_share
from incrowd.criteria.variety import distinct, entropy
from incrowd.workflows.forms.anonymized import classes, shares
from incrowd.workflows.forms.anonymized.recounted import _most
from incrowd.workflows.forms.anonymized.shares import Verdict

ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=40)


def groups(rows: list[tuple[int, int]]) -> Groups:
    keys, counts = np.unique(np.array(rows), axis=0, return_counts=True)
    met, values = np.unique(keys[:, 1], return_inverse=True)
    starts = np.flatnonzero(np.append(True, keys[1:, 0] != keys[:-1, 0]))
    return Groups(starts, values.astype(np.int32), counts.astype(np.int64), pa.array(met.astype(str)))


@settings(max_examples=80, deadline=None)
@given(ROWS)
def test_both_counts_agree(rows: list[tuple[int, int]]) -> None:
    table = pa.table({"q": [str(q) for q, _ in rows], "s": [str(s) for _, s in rows]})
    counted, known = classes.classes_of(table.to_batches(max_chunksize=7), ["q"], "s"), groups(rows)
    assert classes.distinct(counted) == distinct(known).min()
    assert classes.least_entropy(counted) == pytest.approx(entropy(known).min(), rel=1e-9)
    met = shares.whole(counted)
    for named, distances in (("equal", equal(known)), ("ordered", ordered(known))):
        measure = shares.measure_of(named, counted, Type.INTEGER, {})
        assert measure is not None
        farthest = max(measure.of(values, met) for values in counted.values())
        assert float(farthest) == pytest.approx(distances.max(), abs=1e-12)


def test_numbers_are_ordered_as_numbers_with_others_and_missing_last() -> None:
    table = pa.table({"q": ["a"] * 4, "s": ["10", None, "9", "other"]})
    counted = classes.classes_of(table.to_batches(), ["q"], "s")
    assert sorted(counted[("a",)], key=lambda value: shares._place(value, Type.INTEGER)) == ["9", "10", "other", None]


def test_a_table_without_rows_has_no_measures() -> None:
    assert classes.distinct({}) is None
    assert classes.least_entropy({}) is None
    assert classes.greatest_ratio({}, 2) is None
    assert classes.average_risk([]) is None
    assert shares.closeness({}, Fraction(0), shares.Measure(shares.equal), shares.Hidden()).verdict is Verdict.HOLDS


Histograms = st.lists(st.dictionaries(st.sampled_from("abcd"), st.integers(1, 9), min_size=1), min_size=1, max_size=4)


def counted_as(plain: list[dict[str, int]]) -> classes.Classes:
    return {(place,): Counter(values) for place, values in enumerate(plain)}


def everything(counted: classes.Classes, gone: dict[str, int]) -> Counter[str | None]:
    return shares.whole(counted) + Counter(gone)


@settings(max_examples=200, deadline=None)
@given(Histograms, st.dictionaries(st.sampled_from("abcde"), st.integers(1, 9)), st.integers(0, 20), st.integers(1, 40))
def test_what_the_file_decides_is_true_of_all_rows_whatever_was_left_out(
    plain: list[dict[str, int]], gone: dict[str, int], spare: int, twentieths: int
) -> None:
    counted, rows = counted_as(plain), everything(counted_as(plain), gone)
    share = min(Fraction(1), Fraction(sum(gone.values()) + spare, rows.total()))
    hidden, bound = shares.Hidden(share), Fraction(twentieths, 20)
    lifted = shares.Measure(shares.hierarchical([*"abcde"], [["x", "x", "y", "y", "y"]]))
    for measure in (shares.Measure(shares.equal), shares.Measure(shares.ordered("abcde"), steady=False), lifted, None):
        true = (measure or lifted).of
        truth = all(true(values, rows) <= bound for values in counted.values())
        assert_agrees(shares.closeness(counted, bound, measure, hidden).verdict, truth)
    for enhanced in (False, True):
        most = _most(float(bound), enhanced=enhanced)
        truth = all(
            values[value] / values.total() <= most(rows[value] / rows.total()) + 1e-9
            for values in counted.values()
            for value in values
        )
        assert_agrees(shares.likeness(counted, most, hidden).verdict, truth)
    truth = all(
        values[value] and abs(math.log2(values[value] / values.total() / (rows[value] / rows.total()))) < bound
        for values in counted.values()
        for value in rows
    )
    assert_agrees(shares.disclosure(counted, float(bound), hidden).verdict, truth)


def assert_agrees(verdict: Verdict, truth: bool) -> None:
    assert verdict is Verdict.OPEN or (verdict is Verdict.HOLDS) == truth


def test_with_nothing_left_out_nothing_is_left_open() -> None:
    counted = counted_as([{"a": 3, "b": 1}, {"a": 1, "b": 3}])
    for t, verdict in ((Fraction(1, 4), Verdict.HOLDS), (Fraction(1, 5), Verdict.BROKEN)):
        assert shares.closeness(counted, t, shares.Measure(shares.equal), shares.Hidden()).verdict is verdict
    assert shares.likeness(counted, _most(0.5, enhanced=False), shares.Hidden()).verdict is Verdict.HOLDS
    assert shares.likeness(counted, _most(0.4, enhanced=False), shares.Hidden()).verdict is Verdict.BROKEN
    assert shares.disclosure(counted, 1.01, shares.Hidden()).verdict is Verdict.HOLDS
    assert shares.disclosure(counted, 0.9, shares.Hidden()).verdict is Verdict.BROKEN


def test_gross_forgeries_are_found_although_rows_were_left_out() -> None:
    counted = counted_as([{"a": 9}, {"b": 9}])
    hidden = shares.Hidden(Fraction(1, 10))
    assert shares.closeness(counted, Fraction(1, 5), shares.Measure(shares.equal), hidden).verdict is Verdict.BROKEN
    assert shares.likeness(counted, _most(0.5, enhanced=False), hidden).verdict is Verdict.BROKEN
    assert shares.disclosure(counted, 0.5, hidden).verdict is Verdict.BROKEN
    assert shares.closeness(counted, Fraction(11, 20), shares.Measure(shares.equal), hidden).verdict is Verdict.OPEN


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=8), st.integers(0, 30))
def test_the_estimate_of_unique_rows_is_that_of_the_criterion(sizes: list[int], more: int) -> None:
    people = sum(sizes) + more
    found = classes.unique_share(sizes, people)
    assert found == pytest.approx(unique_share(np.array(sizes), people), rel=1e-9, abs=1e-12)


def test_more_rows_than_people_have_no_estimate() -> None:
    assert classes.unique_share([3], 2) is None


def test_the_order_of_categories_and_the_tree_come_from_the_steps() -> None:
    counted = counted_as([{"low": 1}, {"high": 1}])
    places = {"in order": ["low", "mid", "high", None], "labels above": [["l", "l", "h", None]]}
    assert shares.measure_of("ordered", counted, Type.TEXT, {}) is None
    assert shares.measure_of("hierarchical", counted, None, {"in order": ["low"]}) is None
    measured = shares.measure_of("ordered", counted, Type.TEXT, places)
    assert measured is not None
    assert not measured.steady
    lifted = shares.measure_of("hierarchical", counted, Type.TEXT, places)
    assert lifted is not None
    assert lifted.of(Counter({"low": 1}), shares.whole(counted)) == Fraction(1, 2)
