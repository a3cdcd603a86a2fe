from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.stats import wasserstein_distance

from incrowd.criteria.distances import equal, ordered
from incrowd.criteria.groups import Groups, distinct, entropy
from incrowd.errors import InvalidParameter
from tests.measures.counted import Row, counted, grouped, rows

QUASI = ("first", "second")


def groups_of(table: list[Row]) -> Groups:
    return Groups.of(counted(table), QUASI, "sensitive")


def total_variation(here: Counter[str | None], everywhere: Counter[str | None]) -> Fraction:
    gaps = (Fraction(here[v], here.total()) - Fraction(everywhere[v], everywhere.total()) for v in everywhere)
    return sum((abs(gap) for gap in gaps), Fraction(0)) / 2


def transport(here: Counter[str | None], everywhere: Counter[str | None]) -> float:
    """The earth mover's distance over ranks, by another implementation."""
    values = sorted(everywhere, key=lambda value: (value is None, value))
    if len(values) == 1:
        return 0.0
    places = np.arange(len(values)) / (len(values) - 1)
    weights = [[counter[value] for value in values] for counter in (here, everywhere)]
    return float(wasserstein_distance(places, places, *weights))


@settings(deadline=None)
@given(rows)
def test_groups_hold_every_row_once(table: list[Row]) -> None:
    groups = groups_of(table)
    assert sorted(groups.sizes) == sorted(values.total() for values in grouped(table).values())
    assert dict(zip(groups.labels.to_pylist(), groups.totals, strict=True)) == Counter(row[2] for row in table)


@settings(deadline=None)
@given(rows)
def test_distinct_values_are_counted_group_by_group(table: list[Row]) -> None:
    assert sorted(distinct(groups_of(table))) == sorted(map(len, grouped(table).values()))


@settings(deadline=None)
@given(rows)
def test_entropy_is_that_of_the_definition(table: list[Row]) -> None:
    slow = []
    for values in grouped(table).values():
        shares = [times / values.total() for times in values.values()]
        slow.append(math.exp(-sum(share * math.log(share) for share in shares)))
    assert sorted(entropy(groups_of(table))) == pytest.approx(sorted(slow))


@settings(deadline=None)
@given(rows)
def test_entropy_never_exceeds_the_number_of_values(table: list[Row]) -> None:
    groups = groups_of(table)
    assert (entropy(groups) <= distinct(groups) * (1 + 1e-12)).all()


@settings(deadline=None)
@given(rows)
def test_the_equal_distance_is_half_the_sum_of_differences(table: list[Row]) -> None:
    everywhere = Counter(row[2] for row in table)
    slow = sorted(float(total_variation(values, everywhere)) for values in grouped(table).values())
    assert sorted(equal(groups_of(table))) == pytest.approx(slow, abs=1e-12)


@settings(deadline=None)
@given(rows)
def test_the_ordered_distance_is_the_earth_movers(table: list[Row]) -> None:
    everywhere = Counter(row[2] for row in table)
    slow = sorted(transport(values, everywhere) for values in grouped(table).values())
    assert sorted(ordered(groups_of(table))) == pytest.approx(slow, abs=1e-12)


@settings(deadline=None)
@given(rows)
def test_an_order_given_from_outside_is_used(table: list[Row]) -> None:
    groups = groups_of(table)
    backwards = np.arange(len(groups.labels))[::-1]
    assert ordered(groups.placed(backwards)) == pytest.approx(
        ordered(groups), abs=1e-12
    )  # a mirror changes no distance
    turned = np.roll(np.arange(len(groups.labels)), 1)
    moved = dict(zip(groups.labels.to_pylist(), turned, strict=True))
    renamed: list[Row] = [(first, second, f"{moved[value]:02d}") for first, second, value in table]
    assert ordered(groups.placed(turned)) == pytest.approx(ordered(groups_of(renamed)), abs=1e-12)


@settings(deadline=None)
@given(rows)
def test_the_ordered_distance_is_never_above_the_equal_one(table: list[Row]) -> None:
    groups = groups_of(table)
    assert (ordered(groups) <= equal(groups) + 1e-12).all()


def test_a_table_without_rows_has_no_groups() -> None:
    groups = Groups.of(counted([("a", "b", "1")]).at_least(2), QUASI, "sensitive")
    for measure in (distinct, entropy, equal, ordered):
        assert len(measure(groups)) == 0


def test_the_sensitive_column_cannot_be_a_quasi_identifier() -> None:
    with pytest.raises(InvalidParameter, match="name it once"):
        Groups.of(counted([("a", "b", "1")]), ["first", "sensitive"], "sensitive")
