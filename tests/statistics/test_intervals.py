"""Do the intervals of answers hold the truth as often as they say?"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from incrowd.core.coins import Coins
from incrowd.core.domain import Type
from incrowd.mechanisms.vector_noise import AddCube, AddGaussianVector
from incrowd.noise.system import SystemCoins
from incrowd.queries.measurement import Measurement, measurement
from incrowd.queries.measuring.intervals import MISS
from incrowd.queries.question import Aggregate, AggregateKind, Value
from tests.queries.asked import ROW, Visit, asked, collected, terms
from tests.statistics.alarm import FALSE_ALARM

TRIALS = 6000
COINS: Coins = SystemCoins()
VALUE = Value("age", Type.INTEGER, Fraction(0), Fraction(100), optional=True)
AGGREGATES = (
    Aggregate("n", AggregateKind.ROWS),
    Aggregate("present", AggregateKind.COUNT, VALUE),
    Aggregate("total", AggregateKind.SUM, VALUE),
    Aggregate("mean", AggregateKind.MEAN, VALUE),
    Aggregate("variance", AggregateKind.VARIANCE, VALUE),
)


def truth(visits: list[Visit]) -> dict[str, float]:
    ages = np.array([visit[3] for visit in visits if visit[3] is not None])
    return {
        "n": len(visits),
        "present": len(ages),
        "total": float(ages.sum()),
        "mean": float(ages.mean()),
        "variance": float(ages.var(ddof=1)),
    }


def missed(measured: Measurement, visits: list[Visit]) -> dict[str, float]:
    """Return how often each interval misses, over many answers to one question."""
    tables = collected(measured, visits)
    true, misses = truth(visits), dict.fromkeys(truth(visits), 0)
    for _ in range(TRIALS // 200):
        many = tables[0].take([0] * 200)  # noise is drawn for each row: as many independent answers
        vectors = np.stack([many.column(f"_s{i}").to_numpy() for i in range(len(measured.sums.all))], axis=1)
        assert measured.noise_choice.noise is not None
        noisy = measured.noise_choice.noise.release(vectors, COINS)
        for name, column in measured._read(noisy).items():
            assert column.low is not None
            assert column.high is not None
            low, high = column.low.to_numpy(), column.high.to_numpy()
            misses[name] += int(((low > true[name] + 1e-9) | (high < true[name] - 1e-9)).sum())
    return {name: count / TRIALS for name, count in misses.items()}


def most(intervals: int, trials: int) -> float:
    """Return a share of misses that none of so many intervals exceeds, but for half of a false alarm."""
    return float(binom.isf(FALSE_ALARM / 2 / intervals, trials, MISS)) / trials


@pytest.mark.parametrize("rows", [4, 60])
@pytest.mark.parametrize("paid", [{"epsilon": 1}, {"epsilon": Fraction(1, 10)}, {"rho": Fraction(1, 20)}], ids=str)
def test_intervals_hold_the_truth_in_95_of_100_answers(rows: int, paid: dict[str, Fraction]) -> None:
    visits: list[Visit] = [(i, "F", "a", float((17 * i) % 101) if i % 4 else None) for i in range(rows)]
    measured = measurement(asked(AGGREGATES, keys=()), ROW, terms(**paid))
    assert isinstance(measured.noise_choice.noise, AddGaussianVector if "rho" in paid else AddCube)
    found = missed(measured, visits)
    assert max(found.values()) <= most(len(AGGREGATES), TRIALS), found
    assert found["total"] > MISS / 2, found
    assert binom.cdf(TRIALS * MISS / 2, TRIALS, 0.8 * MISS) < FALSE_ALARM / 2  # they are not idly wide: 4 to 5 % miss


def test_ratios_of_aggregates_hold_the_truth_in_95_of_100_answers() -> None:
    visits: list[Visit] = [(i, "FM"[i % 2], "a", float(i % 101)) for i in range(400)]
    question = asked(AGGREGATES[:3], keys=(), outputs={"share": "100.0 * total / n", "sum": "n + present"})
    measured = measurement(question, ROW, terms(epsilon=1))
    tables = collected(measured, visits)
    total, rows, trials = sum(i % 101 for i in range(400)), 400, 100
    true, misses = {"share": 100.0 * total / rows, "sum": 2 * rows}, dict.fromkeys(("share", "sum"), 0)
    for _ in range(trials):
        row = measured.answer(tables, COINS).rows()[0]
        for name, value in true.items():
            misses[name] += not row[f"{name}_low"] <= value <= row[f"{name}_high"]
    assert max(misses.values()) <= trials * most(len(true), trials), misses


def test_answers_from_a_secret_sample_are_for_all_rows_and_their_intervals_hold_the_error_of_the_sample() -> None:
    """The samples are drawn with a seed, the noise is not: misses by the sample are the same in every run."""
    rng = np.random.default_rng(1)
    value = Value("age", Type.INTEGER, Fraction(0), Fraction(100), optional=False)
    aggregates = (
        AGGREGATES[0],
        Aggregate("total", AggregateKind.SUM, value),
        Aggregate("mean", AggregateKind.MEAN, value),
    )
    rate = Fraction(1, 5)
    measured = measurement(asked(aggregates, keys=()), ROW, terms(epsilon=1, rate=rate))
    true = {"n": 20_000.0, "total": float(sum(i % 101 for i in range(20_000))), "mean": 0.0}
    true["mean"] = true["total"] / true["n"]
    ages, misses = np.arange(20_000) % 101, dict.fromkeys(true, 0)
    samples = [ages[rng.random(20_000) < float(rate)] for _ in range(500)]
    sums = np.array([[len(taken), int((taken - 50).sum())] for taken in samples])
    noise = measured.noise_choice.noise
    assert noise is not None
    for name, column in measured._read(noise.release(sums, COINS)).items():
        assert column.low is not None
        assert column.high is not None
        misses[name] = int(((column.low.to_numpy() > true[name]) | (true[name] > column.high.to_numpy())).sum())
    assert max(misses.values()) <= 500 * most(len(true), 500), misses
