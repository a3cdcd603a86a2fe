"""The second count of every criterion agrees with the first, though it shares no code with it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.domain import Type
from incrowd.criteria import slow_distances as slow
from incrowd.criteria.average_risk import AverageRisk
from incrowd.criteria.closeness import CLOSENESS, EqualCloseness, HierarchicalCloseness, OrderedCloseness
from incrowd.criteria.demand import Demand
from incrowd.criteria.disclosure import DeltaDisclosure
from incrowd.criteria.distances import equal, ordered
from incrowd.criteria.diversity import DistinctDiversity, EntropyDiversity, RecursiveDiversity
from incrowd.criteria.groups import Groups
from incrowd.criteria.k_anonymity import KAnonymity
from incrowd.criteria.likeness import BasicLikeness, EnhancedLikeness
from incrowd.criteria.partition import Partition
from incrowd.criteria.population import DeltaPresence, KMap
from incrowd.criteria.recount import Classes, Places, WrittenTable, classes_of, whole
from incrowd.criteria.uniqueness.criterion import PopulationUniqueness

ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=40)
ORDER = Places((*"abcde",))
TREE = Places((*"abcde",), (("x", "x", "y", "y", "y"),))


def groups(rows: list[tuple[int, int]]) -> Groups:
    keys, counts = np.unique(np.array(rows), axis=0, return_counts=True)
    met, values = np.unique(keys[:, 1], return_inverse=True)
    starts = np.flatnonzero(np.append(True, keys[1:, 0] != keys[:-1, 0]))
    return Groups(starts, values.astype(np.int32), counts.astype(np.int64), pa.array(met.astype(str)))


def written(classes: Classes, left_out: Fraction = Fraction(0), places: Places | None = None) -> WrittenTable:
    sizes = [values.total() for values in classes.values()]
    return WrittenTable(
        lambda: min(sizes, default=None),
        lambda: sizes,
        lambda _: classes,
        left_out,
        {} if places is None else {"s": places},
    )


def counted_as(plain: Sequence[dict[str, int]]) -> Classes:
    return {(place,): Counter(values) for place, values in enumerate(plain)}


DEMANDS: list[Demand] = [
    *(KAnonymity(k) for k in (1, 2, 5)),
    *(DistinctDiversity("s", l, frozenset(some)) for l in (1, 2, 3) for some in ((), ("1",))),  # noqa: E741
    *(EntropyDiversity("s", l, harmless=frozenset(some)) for l in ("1", "3/2", "5/2") for some in ((), ("1",))),  # noqa: E741
    *(RecursiveDiversity("s", c, l, frozenset(some)) for c in ("1/2", "2") for l in (2, 3) for some in ((), ("0",))),  # noqa: E741
    *(CLOSENESS[name]("s", t) for name in ("equal", "ordered") for t in ("1/10", "1/3", "2/3")),
    *(EqualCloseness("s", t, frozenset({"1"})) for t in ("1/10", "1/3", "2/3")),
    *(kind("s", beta, frozenset(some)) for kind in (BasicLikeness, EnhancedLikeness) for beta in ("1/3", "2")
      for some in ((), ("1",))),
    *(DeltaDisclosure("s", delta, frozenset(some)) for delta in ("1/3", "2") for some in ((), ("1", "2", "3", "4"))),
    *(AverageRisk(limit) for limit in ("1/4", "1/2")),
    *(PopulationUniqueness("1/4", 60, model) for model in ("zayatz", "dankar")),
]  # fmt: skip


@settings(max_examples=80, deadline=None)
@given(ROWS)
def test_every_criterion_is_met_by_its_kernel_where_it_holds_by_the_slow_count(rows: list[tuple[int, int]]) -> None:
    table = pa.table({"q": [str(q) for q, _ in rows], "s": [str(s) for _, s in rows]})
    counted, known = classes_of(table.to_batches(max_chunksize=7), ["q"], "s"), groups(rows)
    plain = WrittenTable(
        lambda: min(values.total() for values in counted.values()),
        lambda: [values.total() for values in counted.values()],
        lambda _: counted,
        types={"s": Type.INTEGER},
    )
    partition = Partition(known.sizes, {"s": known})
    for demand in DEMANDS:
        assert demand.recount(plain).holds is bool(demand.met(partition).all()), demand


@settings(max_examples=80, deadline=None)
@given(ROWS)
def test_both_distances_agree(rows: list[tuple[int, int]]) -> None:
    table = pa.table({"q": [str(q) for q, _ in rows], "s": [str(s) for _, s in rows]})
    counted, known = classes_of(table.to_batches(max_chunksize=7), ["q"], "s"), groups(rows)
    met = whole(counted)
    for named, distances in (("equal", equal(known)), ("ordered", ordered(known))):
        measure = slow.measure_of(named, counted, Type.INTEGER, None)
        assert measure is not None
        farthest = max(measure.of(values, met) for values in counted.values())
        assert float(farthest) == pytest.approx(distances.max(), abs=1e-12)


def test_numbers_are_ordered_as_numbers_with_others_and_missing_last() -> None:
    table = pa.table({"q": ["a"] * 4, "s": ["10", None, "9", "other"]})
    counted = classes_of(table.to_batches(), ["q"], "s")
    assert sorted(counted[("a",)], key=lambda value: slow.place(value, Type.INTEGER)) == ["9", "10", "other", None]


@pytest.mark.parametrize("demand", DEMANDS, ids=lambda demand: type(demand).__name__)
def test_a_table_without_rows_meets_everything(demand: Demand) -> None:
    assert demand.recount(written({})).holds is True


@pytest.mark.parametrize("demand", [KMap(5, "people.csv"), DeltaPresence(0, "1/2", "people.csv")], ids=repr)
def test_what_compares_with_a_population_is_left_open(demand: Demand) -> None:
    assert demand.recount(written(counted_as([{"a": 9}]))).holds is None


Histograms = st.lists(st.dictionaries(st.sampled_from("abcd"), st.integers(1, 9), min_size=1), min_size=1, max_size=4)


@settings(max_examples=200, deadline=None)
@given(Histograms, st.dictionaries(st.sampled_from("abcde"), st.integers(1, 9)), st.integers(0, 20), st.integers(1, 20))
def test_what_the_file_decides_is_true_of_all_rows_whatever_was_left_out(
    plain: list[dict[str, int]], gone: dict[str, int], spare: int, twentieths: int
) -> None:
    counted = counted_as(plain)
    rows = whole(counted) + Counter(gone)
    share = min(Fraction(1), Fraction(sum(gone.values()) + spare, rows.total()))
    bound = Fraction(twentieths, 20)
    lifted = slow.hierarchical(TREE.in_order, TREE.labels_above or ())
    for demand, places, distance in (
        (EqualCloseness("s", bound), None, slow.equal),
        (OrderedCloseness("s", bound), ORDER, slow.ordered("abcde")),
        (HierarchicalCloseness("s", bound), TREE, lifted),
        (HierarchicalCloseness("s", bound), None, lifted),
    ):
        truth = all(distance(values, rows) <= bound for values in counted.values())
        assert demand.recount(written(counted, share, places)).holds in (None, truth)
    for likeness in (BasicLikeness("s", bound), EnhancedLikeness("s", bound)):
        truth = all(
            values[value] / values.total() <= likeness._most(rows[value] / rows.total()) + 1e-9
            for values in counted.values()
            for value in values
        )
        assert likeness.recount(written(counted, share)).holds in (None, truth)
    truth = all(
        values[value] and abs(math.log2(values[value] / values.total() / (rows[value] / rows.total()))) < bound
        for values in counted.values()
        for value in rows
    )
    assert DeltaDisclosure("s", bound).recount(written(counted, share)).holds in (None, truth)


def test_with_nothing_left_out_nothing_is_left_open() -> None:
    table = written(counted_as([{"a": 3, "b": 1}, {"a": 1, "b": 3}]))
    for demand, holds in (
        (EqualCloseness("s", "1/4"), True),
        (EqualCloseness("s", "1/5"), False),
        (BasicLikeness("s", "0.5"), True),
        (BasicLikeness("s", "0.4"), False),
        (DeltaDisclosure("s", "1.01"), True),
        (DeltaDisclosure("s", "0.9"), False),
    ):
        assert demand.recount(table).holds is holds


def test_gross_forgeries_are_found_although_rows_were_left_out() -> None:
    table = written(counted_as([{"a": 9}, {"b": 9}]), Fraction(1, 10))
    for demand in (EqualCloseness("s", "1/5"), BasicLikeness("s", "0.5"), DeltaDisclosure("s", "0.5")):
        assert demand.recount(table).holds is False
    found = EqualCloseness("s", "11/20").recount(table)
    assert found.holds is None
    assert found.text.endswith("suppressed rows count too, so the file alone does not decide it")


def test_the_order_of_categories_and_the_tree_come_from_the_steps() -> None:
    counted = counted_as([{"low": 1}, {"high": 1}])
    places = Places(("low", "mid", "high", None), (("l", "l", "h", None),))
    assert slow.measure_of("ordered", counted, None, None) is None
    assert slow.measure_of("hierarchical", counted, None, Places(("low",))) is None
    measured = slow.measure_of("ordered", counted, None, places)
    assert measured is not None
    assert not measured.steady
    lifted = slow.measure_of("hierarchical", counted, None, places)
    assert lifted is not None
    assert lifted.of(Counter({"low": 1}), whole(counted)) == Fraction(1, 2)


def test_where_nobody_is_told_how_far_values_are_apart_it_is_said() -> None:
    found = OrderedCloseness("s", "1/5").recount(written(counted_as([{"low": 1}, {"high": 1}])))
    assert found.holds is None
    assert found.text.endswith("the distances of its values are not published, so the file alone does not decide it")


def test_more_rows_than_people_break_an_estimate() -> None:
    found = PopulationUniqueness("1/4", 2).recount(written(counted_as([{"a": 3}])))
    assert found.holds is False
    assert found.text == "there are more rows than people from whom they could come"
