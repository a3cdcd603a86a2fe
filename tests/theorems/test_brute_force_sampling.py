"""Every small database, every sample: what is guaranteed is kept, and the tight delta is attained."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement

import pytest

from incrowd.accounting.suppression.tight_delta import delta, worst_size_add, worst_size_remove
from incrowd.core.unit import Adjacency
from tests.theorems.exact_laws import Database, e_to_the, excess, published_table

SETTINGS = [
    (1, Fraction(1, 5), Fraction(1, 2)),
    (2, Fraction(1, 10), Fraction(1, 5)),
    (2, Fraction(1, 3), Fraction(3, 10)),
    (3, Fraction(1, 2), Fraction(1, 10)),
    (3, Fraction(1, 2), Fraction(1)),
    (3, Fraction(9, 10), Fraction(1, 20)),
    (4, Fraction(3, 4), Fraction(2, 5)),
    (6, Fraction(49, 50), Fraction(1, 50)),
]


def databases(cells: int, largest: int) -> Iterator[Database]:
    for size in range(1, largest + 1):
        yield from combinations_with_replacement(range(cells), size)


def without_one(database: Database) -> Iterator[Database]:
    for cell in sorted(set(database)):
        at = database.index(cell)
        yield database[:at] + database[at + 1 :]


@pytest.mark.parametrize("cells", [2, 3])
@pytest.mark.parametrize(("k", "rate", "epsilon"), SETTINGS)
def test_no_pair_of_neighbors_exceeds_the_delta(k: int, rate: Fraction, epsilon: Fraction, cells: int) -> None:
    ratio = e_to_the(epsilon)
    largest = 8 if cells == 2 else 6
    claimed, worst = Fraction(delta(k, rate, epsilon)), Fraction(0)
    for database in databases(cells, largest):
        law = published_table(database, k, rate)
        for smaller in without_one(database):
            neighbor = published_table(smaller, k, rate)
            worst = max(worst, excess(law, neighbor, ratio), excess(neighbor, law, ratio))
    assert worst <= claimed
    if max(worst_size_remove(k, rate, epsilon), worst_size_add(k, rate, epsilon) or 1) <= largest:
        assert worst >= claimed * (1 - Fraction(1, 10**10))
    bounded = Fraction(delta(k, rate, epsilon, population=largest))
    assert worst <= bounded <= worst * (1 + Fraction(1, 10**10))


@pytest.mark.parametrize(("k", "rate", "epsilon"), SETTINGS)
def test_no_replaced_record_exceeds_its_delta(k: int, rate: Fraction, epsilon: Fraction) -> None:
    ratio, cells = e_to_the(epsilon), 3
    claimed = Fraction(delta(k, rate, epsilon, Adjacency.REPLACE))
    removal = Fraction(delta(k, rate, epsilon))
    worst = Fraction(0)
    for database in databases(cells, 6):
        law = published_table(database, k, rate)
        for smaller in without_one(database):
            for cell in range(cells):
                other = published_table(tuple(sorted((*smaller, cell))), k, rate)
                worst = max(worst, excess(law, other, ratio))
    assert worst <= claimed
    assert claimed >= removal * (1 - Fraction(1, 10**10))


def test_the_settings_include_some_whose_worst_database_is_small_enough_to_be_met() -> None:
    met = [
        max(worst_size_remove(k, rate, epsilon), worst_size_add(k, rate, epsilon) or 1) <= 8
        for k, rate, epsilon in SETTINGS
    ]
    assert sum(met) >= 5


def test_replacing_is_truly_worse_than_removing_on_some_small_database() -> None:
    k, rate, epsilon = 2, Fraction(1, 3), Fraction(3, 10)
    ratio = e_to_the(epsilon)
    worst = max(
        excess(published_table(database, k, rate), published_table(replaced, k, rate), ratio)
        for database in databases(2, 8)
        if 0 in database
        for replaced in [tuple(sorted((*database[1:], 1)))]
    )
    assert worst > Fraction(delta(k, rate, epsilon))
