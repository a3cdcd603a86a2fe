"""The curve is the one of the guarantee."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

import pytest

from incrowd.accounting.suppression import tight_delta
from incrowd.core.guarantee import Guarantee
from incrowd.core.loss import Crowd, Pure, Sampled
from incrowd.core.terms import Theorem
from incrowd.core.unit import Unit
from incrowd.drawing.charts import LEFT, TALL, TOP, WIDE
from incrowd.workflows.bounds.odds import Odds
from incrowd.workflows.report.curve import curve, loss_curve

ODDS = Odds(Decimal("0.5"), Decimal("1e-9"))
GUARANTEE = Guarantee(
    Sampled(Fraction(1, 10), Crowd(20)),
    Unit(),
    (Theorem("the-tight-curve", "the tight curve"),),
    delta=Fraction(1, 10**9),
)


def test_the_curve_is_the_tight_one_and_reaches_past_the_guarantee() -> None:
    points = curve(GUARANTEE, ODDS)
    assert points[0].epsilon == 0.0
    assert points[-1].epsilon == 1.0
    for point in points[::6]:
        assert point.delta == pytest.approx(tight_delta.delta(20, "0.1", repr(point.epsilon)), rel=1e-9)


def test_the_guaranteed_point_lies_on_or_above_the_curve() -> None:
    below = [point for point in curve(GUARANTEE, ODDS) if point.epsilon <= 0.5]
    assert below[-1].delta <= float(ODDS.delta)


def test_the_guaranteed_point_is_drawn_where_it_belongs() -> None:
    drawn = str(loss_curve(GUARANTEE, ODDS))
    mark = re.search(r'<circle cx="([\d.]+)%" cy="([\d.]+)"', drawn)
    assert mark is not None
    assert float(mark[1]) == pytest.approx(LEFT + WIDE * 0.5, abs=0.01)
    assert float(mark[2]) == pytest.approx(TOP + TALL * 9 / 14, abs=0.1)


def test_no_curve_is_drawn_where_there_is_none() -> None:
    assert loss_curve(GUARANTEE, Odds(Decimal("Infinity"), Decimal(0))) is None
    pure = Guarantee(Pure(Fraction(1)), Unit(), (Theorem("laplace-noise", "Laplace noise"),))
    assert loss_curve(pure, Odds(Decimal(1), Decimal(0))) is None
