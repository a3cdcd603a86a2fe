"""What keeps a crowd together."""

from __future__ import annotations

from fractions import Fraction

import pytest

from incrowd.accounting.blending.rules import from_private, to_private, with_private
from incrowd.core.loss import Crowd, Pure
from incrowd.core.unit import Adjacency
from incrowd.errors import InvalidParameter, Refused

HALF = Fraction(1, 2)


def test_a_private_release_blends_everyone_at_its_epsilon() -> None:
    assert from_private(Pure(HALF), 1000) == Crowd(1000, HALF)


def test_privacy_of_replaced_people_blends_nobody() -> None:
    with pytest.raises(InvalidParameter, match="added or removed"):
        from_private(Pure(HALF), 5, Adjacency.REPLACE)


def test_a_crowd_that_cannot_form_is_privacy_for_everyone() -> None:
    assert to_private(Crowd(10, HALF), 9) == Pure(HALF)
    with pytest.raises(Refused, match="Sample secretly"):
        to_private(Crowd(10, HALF), 10)


def test_a_private_release_beside_a_crowd_counts_twice_unless_replacing_costs_less() -> None:
    crowd = Crowd(5, Fraction(1))
    assert with_private(crowd, HALF) == Crowd(5, Fraction(2))
    assert with_private(crowd, HALF, replaced_epsilon=HALF) == Crowd(5, Fraction(3, 2))
    assert with_private(crowd, HALF, replaced_epsilon=0) == Crowd(5, Fraction(3, 2))
    assert with_private(crowd, HALF, replaced_epsilon=7) == Crowd(5, Fraction(2))


def test_negative_losses_are_refused() -> None:
    with pytest.raises(InvalidParameter):
        with_private(Crowd(5), -1)
