"""What a release without an epsilon would promise behind a secret sample: always something that can be kept."""

from __future__ import annotations

from fractions import Fraction

import pytest

from incrowd.accounting.suppression import tight_delta
from incrowd.core.loss import Crowd, Loss, Pure, Syntactic
from incrowd.core.unit import Kind, Unit
from incrowd.workflows.plan.forecast import nearest_safe


@pytest.mark.parametrize("k", [1, 3, 10, 100])
@pytest.mark.parametrize("loss", [Syntactic("k-anonymity"), Crowd(5)], ids=["a form", "a crowd"])
def test_every_proposal_keeps_its_own_delta_and_no_smaller_crowd(k: int, loss: Loss) -> None:
    for each in nearest_safe(loss, k, Unit(), population=10**9):
        assert each.k >= k
        assert each.epsilon <= 2
        assert each.delta * 10**9 < 1
        assert Fraction(tight_delta.delta(each.k, each.rate, str(each.epsilon))) <= each.delta


def test_where_there_is_an_epsilon_or_nothing_is_near_nothing_is_proposed() -> None:
    several = Unit(Kind.PERSON, column="id", max_rows=2)
    assert nearest_safe(Pure(Fraction(1)), 5, Unit(), None) == ()
    assert nearest_safe(Crowd(5), None, Unit(), None) == ()
    assert nearest_safe(Syntactic("k-anonymity"), 5, several, None) == ()
