"""Shares of largest likelihood: those that a slow search finds, for every family, and nearer than unbiased ones."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize

from incrowd.errors import InvalidParameter
from incrowd.methods.local import likelihood
from incrowd.methods.local.choice import randomizers
from incrowd.methods.local.estimates import Support
from incrowd.methods.local.likelihood import likeliest
from incrowd.methods.local.mechanisms.randomizer import Categorical, Response
from incrowd.methods.local.mechanisms.ratio import Weights
from incrowd.workflows.local.estimating import EstimateQuery, estimate_reports
from tests.coins import SeededCoins
from tests.surveys import survey

FAMILIES = list(randomizers(4, Weights(5, 2), Weights(3, 2)))


def log_likelihood(made: Categorical, reports: list[int], shares: list[float]) -> float:
    """Return the logarithm of the chance of all reports, by the laws of the family."""
    laws = [made.law(value) for value in range(made.size)]
    keys = sorted(laws[0], key=str)
    chances = np.array([[float(law[key]) for law in laws] for key in keys])
    return float(np.log(chances[reports] @ np.array(shares)).sum())


@pytest.mark.parametrize("made", FAMILIES, ids=lambda made: str(made.family))
def test_no_other_shares_are_likelier_than_those_that_are_found(made: Categorical) -> None:
    """Shares as a softmax, searched from several places by a general method, on the written-out laws."""
    values = np.array([0] * 60 + [1] * 25 + [2] * 5, np.int64)
    reports = made.randomize(values, SeededCoins(5))
    keys = {_key(key): at for at, key in enumerate(sorted(made.law(0), key=str))}
    places = [keys[_key(_members(made, reports[at : at + 1]))] for at in range(len(values))]

    def loss(logits: np.ndarray) -> float:
        shares = np.exp(logits - logits.max())
        return -log_likelihood(made, places, (shares / shares.sum()).tolist())

    starts = (np.zeros(4), np.array([3.0, 1.0, 0.0, -3.0]))
    best = min(minimize(loss, start, method="BFGS").fun for start in starts)
    shares = likeliest(made, reports)
    assert shares.sum() == pytest.approx(1.0)
    assert shares.min() >= 0.0
    assert -log_likelihood(made, places, shares.tolist()) <= best + 0.011


def _key(key: object) -> str:
    return str(key)


def _members(made: Categorical, report: np.ndarray) -> object:
    if report.ndim == 2:
        return tuple(np.flatnonzero(made.members(report)[0]).tolist())
    return int(report[0])


def test_many_shares_are_nearer_to_the_truth_by_likelihood_than_by_inversion() -> None:
    """Among 100 values at ε = 1 the unbiased error is several times as large; the coins are seeded."""
    made = next(one for one in randomizers(100, Weights.below(Fraction(1)), Weights.below(Fraction(1, 2))))
    assert isinstance(made, Response)
    values = np.random.default_rng(3).zipf(1.5, 3000) % 100
    reports = made.randomize(values.astype(np.int64), SeededCoins(3))
    truth = np.bincount(values, minlength=100) / 3000
    unbiased = Support(3000, made.p, made.q).estimates(made.support(reports))
    assert np.sum((unbiased - truth) ** 2) > 2 * np.sum((likeliest(made, reports) - truth) ** 2)


def test_likeliest_shares_come_with_the_same_intervals() -> None:
    asked = survey({"a": {"categories": ["x", "y", "z"]}})
    reports = asked.randomize({"a": ["x"] * 70 + ["y"] * 30}, SeededCoins(1))
    (plain,) = estimate_reports(asked, reports, EstimateQuery())
    (found,) = estimate_reports(asked, reports, EstimateQuery(likelihood=True))
    assert [(one.low, one.high, one.estimate) for one in found.estimates] == [
        (one.low, one.high, one.estimate) for one in plain.estimates
    ]
    assert sum(one.likeliest or 0.0 for one in found.estimates) == pytest.approx(1.0)


def test_too_many_reports_for_a_likelihood_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(likelihood, "MOST_CELLS", 10)
    with pytest.raises(InvalidParameter, match="at most 10 different reports"):
        likeliest(FAMILIES[0], np.arange(4))
