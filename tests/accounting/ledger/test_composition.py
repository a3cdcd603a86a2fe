from __future__ import annotations

from fractions import Fraction

import pytest

from incrowd.accounting.ledger.composition import Footprint, footprint, refuse_company
from incrowd.core.loss import Crowd, Grouped, Loss, Parallel, Pure, RobustlySampled, Sampled, Sequence, Syntactic
from incrowd.errors import DoesNotCompose, SampleReused

TENTH = Fraction(1, 10)
DP, CROWD, FORM = Pure(Fraction(1)), Crowd(5), Syntactic("k-anonymity")
ROBUST = RobustlySampled(TENTH, TENTH, 0, TENTH, CROWD, "s")


@pytest.mark.parametrize(
    ("loss", "crowds", "syntactic"),
    [
        (DP, 0, 0),
        (CROWD, 1, 0),
        (FORM, 0, 1),
        (Sequence((FORM, FORM)), 0, 2),
        (Sequence((CROWD, DP)), 1, 0),
        (Sampled(TENTH, CROWD), 0, 0),
        (Sampled(TENTH, Sequence((CROWD, DP))), 0, 0),
        (Sampled(TENTH, FORM), 0, 1),
        (ROBUST, 0, 0),
        (Grouped(3, CROWD), 1, 0),
        (Parallel((CROWD, CROWD, DP)), 1, 0),
        (Sequence((CROWD, Sampled(TENTH, CROWD))), 1, 0),
    ],
)
def test_only_crowds_without_a_sample_and_forms_leave_a_footprint(loss: Loss, crowds: int, syntactic: int) -> None:
    found = footprint(loss)
    assert (found.crowds, found.syntactic) == (crowds, syntactic)


@pytest.mark.parametrize(
    "loss", [Sequence((CROWD, CROWD)), Sequence((CROWD, FORM)), Parallel((Sequence((CROWD, CROWD)), DP))]
)
def test_a_crowd_beside_anything_but_differential_privacy_is_refused(loss: Loss) -> None:
    with pytest.raises(DoesNotCompose, match="show one person"):
        footprint(loss)


@pytest.mark.parametrize(
    "loss",
    [
        Sequence((Sampled(TENTH, DP, "s"), Sampled(TENTH, DP, "s"))),
        Sequence((Sampled(TENTH, CROWD, "s"), ROBUST)),
        Sampled(TENTH, Sequence((CROWD, CROWD))),
    ],
)
def test_two_parts_from_one_sample_are_refused(loss: Loss) -> None:
    with pytest.raises(SampleReused, match="fresh sample"):
        footprint(loss)


@pytest.mark.parametrize(
    ("new", "crowds", "unbounded", "passes"),
    [
        (Footprint(0, 0, ()), 1, 1, True),
        (Footprint(1, 0, ()), 0, 0, True),
        (Footprint(0, 1, ()), 0, 1, True),
        (Footprint(1, 0, ()), 1, 1, False),
        (Footprint(1, 0, ()), 0, 1, False),
        (Footprint(0, 1, ()), 1, 1, False),
    ],
)
def test_a_crowd_tolerates_only_differential_privacy(new: Footprint, crowds: int, unbounded: int, passes: bool) -> None:
    if passes:
        refuse_company(new, crowds, unbounded)
    else:
        with pytest.raises(DoesNotCompose, match="does not compose"):
            refuse_company(new, crowds, unbounded)
