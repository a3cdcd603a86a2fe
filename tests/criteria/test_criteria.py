from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.special import digamma

from incrowd.criteria.average_risk import AverageRisk
from incrowd.criteria.closeness import EqualCloseness, OrderedCloseness
from incrowd.criteria.criterion import All, Criterion, Monotone
from incrowd.criteria.disclosure import DeltaDisclosure, PresentDisclosure
from incrowd.criteria.distances import equal, hierarchical, ordered
from incrowd.criteria.diversity import DistinctDiversity, EntropyDiversity, RecursiveDiversity
from incrowd.criteria.groups import Groups, grassberger
from incrowd.criteria.k_anonymity import KAnonymity
from incrowd.criteria.likeness import BasicLikeness
from incrowd.criteria.partition import Partition
from incrowd.criteria.population import DeltaPresence, KMap
from incrowd.criteria.uniqueness.criterion import PopulationUniqueness, unique_share
from incrowd.errors import InvalidParameter
from tests.criteria.slow_criteria import BRANCH, CRITERIA, SENSITIVE, VALUES, Histogram

histograms = st.dictionaries(st.sampled_from(VALUES), st.integers(1, 6), min_size=1).map(Counter)
classes = st.lists(histograms, min_size=1, max_size=6)
small = st.dictionaries(st.sampled_from(VALUES), st.integers(1, 3), min_size=1).map(Counter)
sizes = st.lists(st.integers(1, 9), min_size=1, max_size=12)


def partition(table: list[Histogram]) -> Partition:
    everywhere = sum(table, Counter())
    met = [value for value in VALUES if everywhere[value]]
    cells = [(number, met.index(v), values[v]) for number, values in enumerate(table) for v in met if values[v]]
    owners, values, counts = (np.array(column) for column in zip(*cells, strict=True))
    lift = np.array([BRANCH[value] for value in met], np.int32)
    starts = np.searchsorted(owners, np.arange(len(table)))
    groups = Groups(starts, values.astype(np.int32), counts, pa.array(met), (lift,))
    return Partition(groups.sizes, {SENSITIVE: groups})


def _parts_of(values: Histogram) -> list[tuple[int, ...]]:
    """Every choice of some of a class's rows, as counts in the order of its values; not the empty one."""
    return [part for part in itertools.product(*(range(times + 1) for times in values.values())) if any(part)]


@pytest.mark.parametrize("name", sorted(CRITERIA))
@settings(deadline=None, max_examples=60)
@given(table=classes)
def test_each_class_is_judged_as_by_hand(name: str, table: list[Histogram]) -> None:
    slow, everywhere = CRITERIA[name], sum(table, Counter())
    assert slow.criterion.met(partition(table)).tolist() == [slow.holds(values, everywhere) for values in table]


@pytest.mark.parametrize("name", [n for n, slow in CRITERIA.items() if slow.criterion.monotone >= Monotone.UNIONS])
@settings(deadline=None, max_examples=100)
@given(table=classes)
def test_a_union_of_classes_that_meet_it_meets_it(name: str, table: list[Histogram]) -> None:
    criterion = CRITERIA[name].criterion
    met = criterion.met(partition(table))
    joined = [values for values, fine in zip(table, met, strict=True) if fine]
    others = [values for values, fine in zip(table, met, strict=True) if not fine]
    if joined:
        assert criterion.met(partition([sum(joined, Counter()), *others]))[0]


@pytest.mark.parametrize("name", [n for n, slow in CRITERIA.items() if slow.criterion.monotone is Monotone.UPWARD])
@settings(deadline=None, max_examples=100)
@given(table=classes)
def test_a_class_that_contains_one_that_meets_it_meets_it(name: str, table: list[Histogram]) -> None:
    criterion = CRITERIA[name].criterion
    if criterion.met(partition(table)).any():
        assert criterion.met(partition([sum(table, Counter())])).all()


@pytest.mark.parametrize("name", [n for n, slow in CRITERIA.items() if slow.criterion.bounding])
@settings(deadline=None, max_examples=25)
@given(table=st.lists(small, min_size=1, max_size=4))
def test_no_part_of_a_class_that_meets_it_is_larger_than_what_is_releasable(name: str, table: list[Histogram]) -> None:
    slow, cut = CRITERIA[name], partition(table)
    most_rows = slow.criterion.releasable(cut, cut.sizes, slow.criterion.met(cut))
    for values, most in zip(table, most_rows, strict=True):
        parts = (Counter(dict(zip(values, part, strict=True))) for part in _parts_of(values))
        assert max((part.total() for part in parts if slow.holds(+part, sum(table, Counter()))), default=0) <= most


@pytest.mark.parametrize("name", ["close", "close, hierarchical", "close, ordered"])
def test_a_class_far_from_the_table_can_release_few_rows(name: str) -> None:
    table = [Counter({"flu": 40, "attack": 2}), Counter({"attack": 40, "flu": 2})]
    cut = partition(table)
    none = np.zeros(len(cut), np.bool_)
    assert (CRITERIA[name].criterion.releasable(cut, cut.sizes, none) < 42).all()


def test_what_is_called_never_monotone_can_fail_for_a_union() -> None:
    # Healthy people alone pass, and so do the two others; together they show one value in eleven rows of twelve.
    apart: list[Histogram] = [Counter(healthy=10), Counter(flu=1, healthy=1)]
    criterion = CRITERIA["entropy, harmless"].criterion
    assert criterion.monotone is Monotone.NEVER
    assert criterion.met(partition(apart)).all()
    assert not criterion.met(partition([sum(apart, Counter())])).any()


def test_a_class_may_lack_a_value_where_only_shown_values_are_compared() -> None:
    apart: list[Histogram] = [Counter(flu=3), Counter(flu=1, cough=1)]
    assert DeltaDisclosure(SENSITIVE, 2).met(partition(apart)).tolist() == [False, True]
    assert PresentDisclosure(SENSITIVE, 2).met(partition(apart)).all()
    assert PresentDisclosure(SENSITIVE, 2).monotone is Monotone.NEVER


@settings(deadline=None, max_examples=40)
@given(table=classes, chosen=st.integers(0, 63))
def test_some_groups_are_as_far_from_the_whole_table_as_among_all(table: list[Histogram], chosen: int) -> None:
    mask = np.array([bool(chosen >> place & 1) for place in range(len(table))])
    groups = partition(table).groups(SENSITIVE)
    for distance in (equal, ordered, hierarchical):
        assert distance(groups.some(mask)) == pytest.approx(distance(groups)[mask])


@settings(deadline=None, max_examples=40)
@given(table=classes)
def test_the_hierarchical_distance_is_the_least_work_of_moving_earth(table: list[Histogram]) -> None:
    everywhere = sum(table, Counter())
    far = np.array([[0 if a == b else (1 if BRANCH[a] == BRANCH[b] else 2) for b in VALUES] for a in VALUES]) / 2
    for values, distance in zip(table, hierarchical(partition(table).groups(SENSITIVE)), strict=True):
        here = [values[v] / values.total() for v in VALUES]
        there = [everywhere[v] / everywhere.total() for v in VALUES]
        size = len(VALUES)
        sums = [np.kron(np.eye(size), np.ones(size)), np.kron(np.ones(size), np.eye(size))]
        moved = linprog(far.ravel(), A_eq=np.vstack(sums), b_eq=[*here, *there])
        assert distance == pytest.approx(moved.fun, abs=1e-9)


@given(count=st.integers(1, 10**7))
def test_grassbergers_logarithm_is_a_digamma_function(count: int) -> None:
    expected = digamma(count // 2 + 0.5) + math.log(2)
    assert grassberger(np.array([count]))[0] == pytest.approx(expected, abs=1e-12)


def test_people_of_the_population_hide_a_row() -> None:
    assert KMap(5).met(Partition(np.array([1, 1]), population=np.array([5, 4]))).tolist() == [True, False]


def test_presence_is_bounded_from_both_sides() -> None:
    table = Partition(np.array([1, 2, 3]), population=np.array([10, 4, 4]))
    assert DeltaPresence("0.2", "0.5").met(table).tolist() == [False, True, False]


def test_people_known_to_be_absent_rule_out_any_release_with_a_least_presence() -> None:
    table = Partition(np.array([2]), population=np.array([4]), outside=1)
    assert not DeltaPresence("0.1", "0.5").met(table).any()
    assert DeltaPresence(0, "0.5").met(table).all()


def test_a_criterion_on_a_population_needs_one() -> None:
    with pytest.raises(InvalidParameter, match="population"):
        KMap(2).met(Partition(np.array([3])))


@given(each=sizes, limit=st.sampled_from(("1/2", "1/3", "1/5")))
def test_the_average_risk_is_met_by_suppressing_the_smallest_classes_only(each: list[int], limit: str) -> None:
    kept = AverageRisk(limit).met(Partition(np.array(each)))
    left = [size for size, fine in zip(each, kept, strict=True) if fine]
    assert sorted(left) == sorted(each)[len(each) - len(left) :]
    assert len(left) <= Fraction(limit) * sum(left)


@settings(deadline=None, max_examples=60)
@given(each=st.lists(st.integers(1, 9), min_size=1, max_size=8), limit=st.sampled_from(("1/2", "1/3", "1/5")))
def test_no_choice_of_classes_that_meets_the_average_risk_leaves_out_fewer_rows(each: list[int], limit: str) -> None:
    kept = AverageRisk(limit).met(Partition(np.array(each)))
    choices = itertools.product((False, True), repeat=len(each))
    released = [[size for size, chosen in zip(each, choice, strict=True) if chosen] for choice in choices]
    most = max(sum(sizes) for sizes in released if len(sizes) <= Fraction(limit) * sum(sizes))
    assert int(np.array(each)[kept].sum()) == most


def test_of_classes_of_one_size_no_more_go_than_the_average_risk_asks_for() -> None:
    table = Partition(np.array([1, 1, 1, 7]))
    assert AverageRisk("1/4").met(table).tolist() == [False, False, True, True]


def test_an_average_risk_that_only_whole_numbers_can_tell_is_told_by_them() -> None:
    table = Partition(np.array([1, 3 * 10**17]))
    assert AverageRisk(Fraction(2, 3 * 10**17 + 1)).met(table).all()
    assert not AverageRisk(Fraction(2 * 10**17 - 1, (3 * 10**17 + 1) * 10**17)).met(table).all()


@given(each=sizes, extra=st.integers(0, 30))
def test_zayatz_estimate_is_bayes_rule(each: list[int], extra: int) -> None:
    rows, people = sum(each), sum(each) + extra
    times = Counter(each)

    def alone(size: int) -> Fraction:
        return Fraction(size * math.comb(people - size, rows - 1), math.comb(people, rows))

    evidence = sum((times[size] * alone(size) for size in times), Fraction(0))
    expected = times[1] * alone(1) / evidence * Fraction(times[1], rows) if times[1] else Fraction(0)
    assert unique_share(np.array(each), people) == pytest.approx(float(expected), abs=1e-9)


def test_unique_rows_go_where_too_many_would_be_unique_people() -> None:
    table = Partition(np.array([1, 1, 3]))
    assert PopulationUniqueness("0.9", 10).met(table).all()
    assert PopulationUniqueness("0.01", 10).met(table).tolist() == [False, False, True]


def test_a_sample_does_not_outgrow_its_population() -> None:
    with pytest.raises(InvalidParameter, match="does not fit"):
        unique_share(np.array([1, 5]), 5)


@given(each=sizes)
def test_criteria_about_all_classes_look_at_what_the_others_left(each: list[int]) -> None:
    table = Partition(np.array(each))
    both = (AverageRisk("1/3") & KAnonymity(2)).met(table)
    left = [size for size, fine in zip(each, both, strict=True) if fine]
    assert all(size >= 2 for size in left)
    assert len(left) * 3 <= sum(left)
    assert (AverageRisk("1/3") & KAnonymity(2)).whole


def test_and_gathers_what_its_parts_need() -> None:
    both = KAnonymity(2) & DistinctDiversity("a", 2) & EqualCloseness("b", "0.1")
    assert isinstance(both, All)
    assert both.sensitive == ("a", "b")
    assert both.monotone is Monotone.UNIONS


BAD = (
    lambda: KAnonymity(0), lambda: KMap(0), lambda: DistinctDiversity("a", 0), lambda: EntropyDiversity("a", "0.5"),
    lambda: RecursiveDiversity("a", 1, 1), lambda: RecursiveDiversity("a", 0, 2), lambda: EqualCloseness("a", "1.1"),
    lambda: OrderedCloseness("a", -1), lambda: BasicLikeness("a", 0), lambda: DeltaDisclosure("a", 0),
    lambda: DeltaPresence("0.5", "0.4"), lambda: AverageRisk(0), lambda: PopulationUniqueness(2, 10),
    lambda: PopulationUniqueness("0.1", 0), lambda: All(()),
)  # fmt: skip


@pytest.mark.parametrize("make", BAD)
def test_parameters_that_mean_nothing_are_refused(make: object) -> None:
    with pytest.raises(InvalidParameter):
        make()  # type: ignore[operator]


def test_a_column_that_was_not_counted_is_named() -> None:
    with pytest.raises(InvalidParameter, match="'ill'"):
        DistinctDiversity("ill", 2).met(Partition(np.array([3])))


def test_criteria_are_values() -> None:
    every: list[Criterion] = [EqualCloseness("a", "0.1"), OrderedCloseness("a", "0.1"), KAnonymity(2), KMap(2)]
    for one, other in itertools.combinations(every, 2):
        assert one != other
    assert EqualCloseness("a", "0.1") == EqualCloseness("a", "0.1")
