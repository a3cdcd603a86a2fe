"""Secret samples: intervals for all rows, exact where they are counted, narrower the more rows there are."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from incrowd.core.domain import Type
from incrowd.noise.tails import CubeLaw
from incrowd.queries.measurement import Measurement, measurement
from incrowd.queries.measuring.sampling import SampleInterval
from incrowd.queries.query import Aggregate, AggregateKind, Value
from tests.queries.asked import ROW, asked, terms

VALUE = Value("age", Type.INTEGER, Fraction(0), Fraction(100), optional=False)
SIGNED = Value("age", Type.INTEGER, Fraction(-50), Fraction(100), optional=False)


@pytest.mark.parametrize("scale", [Fraction(1, 5), Fraction(2), Fraction(20)], ids=str)
@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_counts_of_a_sample_hold_the_number_of_rows_in_95_of_100_cases(scale: Fraction, rate: float) -> None:
    """The chance is added up over samples and noise: nothing is drawn, and few rows are no exception."""
    law = CubeLaw((1,), 1, scale)
    noise = np.arange(-int(25 * scale) - 25, int(25 * scale) + 26)
    masses = np.exp(-np.abs(noise) / float(scale))
    for rows in (0, 1, 2, 5, 12, 40, 300):
        seen = np.arange(rows + 1)
        noisy = (seen[:, None] + noise[None, :]).ravel()
        chances = np.outer(binom.pmf(seen, rows, rate), masses / masses.sum()).ravel()
        low, high = SampleInterval(rate, 0.05).counts(noisy, law.marginal(0))
        assert float(chances[(low <= rows) & (rows <= high)].sum()) >= 0.95 - 1e-4


def test_where_there_is_hardly_any_noise_counts_are_exact_binomial() -> None:
    law = CubeLaw((1,), 1, Fraction(1, 100))
    low, high = SampleInterval(0.25, 0.05).counts(np.arange(60), law.marginal(0))
    for seen in range(60):
        rows = np.arange(seen, 600)
        likely = rows[(binom.sf(seen - 1, rows, 0.25) > 0.025) & (binom.cdf(seen, rows, 0.25) > 0.025)]
        assert (low[seen], high[seen]) == (likely[0], likely[-1])


def test_many_rows_meet_the_normal_law_without_a_jump() -> None:
    law = CubeLaw((1,), 1, Fraction(2))
    noisy = np.arange(19_000, 21_000, 10)
    low, high = SampleInterval(0.5, 0.05).counts(noisy, law.marginal(0))
    assert (np.diff(low) >= 0).all()
    assert (np.diff(high) >= 0).all()
    half = (high - low) / 2
    assert half.max() < 1.1 * half.min()


def mean_of(rows: int) -> tuple[Measurement, float]:
    measured = measurement(
        asked((Aggregate("mean", AggregateKind.MEAN, VALUE),), keys=()), ROW, terms(epsilon=1, rate="0.2")
    )
    column = measured._read(np.array([[rows // 5, 0]]))["mean"]
    assert column.low is not None
    assert column.high is not None
    return measured, column.high[0].as_py() - column.low[0].as_py()


def test_the_interval_of_a_mean_shrinks_with_the_rows() -> None:
    """Twenty-five times as many rows make it a fifth as wide, where the noise is small beside the sample's error."""
    widths = [mean_of(rows)[1] for rows in (10**4, 25 * 10**4, 625 * 10**4)]
    assert 4.5 < widths[0] / widths[1] < 5.6
    assert 4.8 < widths[1] / widths[2] < 5.2
    assert widths[2] < 0.3


@pytest.mark.parametrize(
    ("value", "beside", "known"), [(VALUE, False, True), (SIGNED, False, False), (SIGNED, True, True)]
)
def test_sums_of_a_sample_have_an_interval_or_say_why_not(value: Value, beside: bool, known: bool) -> None:
    count = (Aggregate("n", AggregateKind.ROWS),) if beside else ()
    question = asked((*count, Aggregate("total", AggregateKind.SUM, value)), keys=())
    measured = measurement(question, ROW, terms(epsilon=1, rate="0.2"))
    column = measured._read(np.full((1, len(measured.sums.all)), 40))["total"]
    assert (column.low is not None) == known
    assert column.note.startswith("no interval: from a secret sample") != known
    (told,) = [each for each in measured.expected if each.output == "total"]
    assert bool(told.by_size) == known


def test_the_rank_of_a_median_is_that_in_the_sample() -> None:
    median = Aggregate("median", AggregateKind.QUANTILE, VALUE, Fraction(1, 2))
    measured = measurement(asked((median,), keys=()), ROW, terms(epsilon=1, rate="0.2"))
    assert measured.expected[0].note.endswith("rows are counted in the secret sample")
