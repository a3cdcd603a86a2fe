"""The auditor refuses exactly when an exhaustive search says that a value is determined."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.queries.classical_answers import MOST_AUDITED, Auditor

SETS = [frozenset(chosen) for size in range(1, 5) for chosen in itertools.combinations(range(4), size)]
# Minors of 4 x 4 matrices of zeros and ones are at most 3, so the null space has a basis with entries within ±3.
MOVES = [move for move in itertools.product(range(-3, 4), repeat=4) if any(move)]


def determined(asked: tuple[frozenset[int], ...]) -> frozenset[int]:
    """Return the rows that no change of values which leaves all sums alone can move."""
    free = {
        place
        for move in MOVES
        if all(sum(move[place] for place in places) == 0 for places in asked)
        for place in range(4)
        if move[place]
    }
    return frozenset(range(4)) - free


@pytest.mark.parametrize("many", [1, 2, 3])
def test_a_value_is_found_determined_exactly_when_nothing_else_fits_the_sums(many: int) -> None:
    for asked in itertools.combinations(SETS, many):
        *before, last = asked
        assert Auditor.replay(before).determined(last) == determined(asked), asked


@given(st.lists(st.sampled_from(SETS), min_size=4, max_size=7))
@settings(max_examples=60, deadline=None)
def test_long_histories_are_audited_exactly_too(asked: list[frozenset[int]]) -> None:
    assert Auditor.replay(asked[:-1]).determined(asked[-1]) == determined(tuple(asked))


@given(st.permutations(SETS[4:10]))
@settings(max_examples=20, deadline=None)
def test_the_order_of_questions_changes_nothing(asked: list[frozenset[int]]) -> None:
    assert Auditor.replay(asked) == Auditor.replay(sorted(asked, key=sorted))


def test_a_sum_that_follows_from_others_adds_nothing() -> None:
    auditor = Auditor.replay([{0, 1}, {2, 3}])
    assert auditor.after({0, 1, 2, 3}) == auditor


def test_an_odd_cycle_of_pairs_determines_everything_and_an_even_one_nothing() -> None:
    odd, even = ([{place, (place + 1) % size} for place in range(size)] for size in (5, 6))
    assert Auditor.replay(odd[:-1]).determined(odd[-1]) == frozenset(range(5))
    assert Auditor.replay(even[:-1]).determined(even[-1]) == frozenset()


def test_the_largest_table_is_audited_in_reasonable_time() -> None:
    chain = [set(range(start, start + 60)) for start in range(MOST_AUDITED - 59)]
    auditor = Auditor.replay(chain)
    assert len(auditor.basis) == len(chain)
    assert auditor.determined(set(range(61))) == frozenset({0, 60, 120, 180})
