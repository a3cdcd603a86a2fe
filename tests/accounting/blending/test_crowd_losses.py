"""What keeps a crowd together."""

from __future__ import annotations

from fractions import Fraction

import pytest

from incrowd.accounting.blending.crowd_losses import with_private
from incrowd.core.loss import Crowd
from incrowd.errors import InvalidParameter

HALF = Fraction(1, 2)


def test_a_private_release_beside_a_crowd_counts_twice_unless_replacing_costs_less() -> None:
    crowd = Crowd(5, Fraction(1))
    assert with_private(crowd, HALF) == Crowd(5, Fraction(2))
    assert with_private(crowd, HALF, replaced_epsilon=HALF) == Crowd(5, Fraction(3, 2))
    assert with_private(crowd, HALF, replaced_epsilon=0) == Crowd(5, Fraction(3, 2))
    assert with_private(crowd, HALF, replaced_epsilon=7) == Crowd(5, Fraction(2))


def test_negative_losses_are_refused() -> None:
    with pytest.raises(InvalidParameter):
        with_private(Crowd(5), -1)
