"""What is measured of a table, by every criterion: its name, its bound, and its worst class."""

from __future__ import annotations

import numpy as np
import pytest

from incrowd.criteria.average_risk import AverageRisk
from incrowd.criteria.catalog import CLAIMS, OF_COLUMN, OF_TABLE
from incrowd.criteria.demand import TableDemand
from incrowd.criteria.itemsets import KmAnonymity
from incrowd.criteria.k_anonymity import RELEASED, SUBSETS, KAnonymity
from incrowd.criteria.measure import Bound, Meaning, Measured, measured
from incrowd.criteria.partition import Partition
from incrowd.criteria.population import DeltaPresence, KMap
from incrowd.criteria.uniqueness.criterion import PopulationUniqueness
from incrowd.workflows.check.check import COLUMNS
from tests.criteria import names

TABLE = Partition(np.array([1, 4]), population=np.array([2, 16]), outside=3)


def test_every_name_is_what_it_was_and_is_used_once() -> None:
    closeness = [names.EQUAL, names.ORDERED, names.HIERARCHICAL]
    from incrowd.criteria.closeness import CLOSENESS

    known = [each.meaning.name for each in (*OF_TABLE, *OF_COLUMN, KmAnonymity) if hasattr(each, "meaning")]
    known += [each.meaning.name for each in CLOSENESS.values()]
    known += [each.name for each in (COLUMNS, RELEASED, SUBSETS, DeltaPresence.least_meaning)]
    written = {value for name, value in vars(names).items() if name.isupper()}
    assert set(known) == written
    assert len(known) == len(written)
    assert set(closeness) <= set(known)


def test_every_criterion_has_a_claim_of_its_own() -> None:
    kinds = [claim.kind for claim in CLAIMS]
    assert len(set(kinds)) == len(kinds) == 13


@pytest.mark.parametrize(
    ("demand", "expected"),
    [
        (KAnonymity(2), [(2, 1, 1)]),
        (KMap(3), [(3, 2, 1)]),
        (DeltaPresence("0.1", "0.4"), [(0.1, 0.0, 5), (0.4, 0.5, 1)]),
        (DeltaPresence(0, "0.5"), [(0.0, 0.25, 0), (0.5, 0.5, 0)]),
        (AverageRisk("1/4"), [(0.25, 0.4, 1)]),
        (PopulationUniqueness("1", 100), [(1.0, pytest.approx(0.0, abs=0.2), 0)]),
    ],
)
def test_the_worst_class_and_the_rows_that_fall_short_are_told(
    demand: TableDemand, expected: list[tuple[float, float, int]]
) -> None:
    found = list(demand.measures(TABLE))
    assert [(each.expected, each.value, each.short) for each in found] == expected
    assert [each.passed for each in found] == [not short for _, _, short in expected]


@pytest.mark.parametrize(
    ("bound", "found", "passed"),
    [
        (Bound.AT_LEAST, 5, True),
        (Bound.AT_LEAST, 5 - 1e-6, False),
        (Bound.AT_MOST, 5 + 1e-10, True),
        (Bound.AT_MOST, 5.1, False),
        (Bound.BELOW, 5, False),
        (Bound.BELOW, 4.9, True),
    ],
)
def test_a_bound_holds_what_was_found_against_what_was_expected(bound: Bound, found: float, *, passed: bool) -> None:
    assert Measured(Meaning("x", "something", bound), 5, found, 0).passed is passed


def test_nothing_fails_without_rows_or_without_an_expectation() -> None:
    meaning = Meaning("x", "something", Bound.AT_LEAST)
    assert measured(meaning, np.zeros(0), np.zeros(0, np.int64), 5).passed is True
    assert measured(meaning, np.array([1.0]), np.array([1]), None).passed is None


def test_parts_are_joined_by_the_worse() -> None:
    meaning = Meaning("x", "something", Bound.AT_LEAST)
    one, other, none = Measured(meaning, 5, 4, 2), Measured(meaning, 5, 3, 1), Measured(meaning, 5, None, 0)
    assert one.joined(other) == Measured(meaning, 5, 3, 3)
    assert one.joined(none) == none.joined(one) == one
