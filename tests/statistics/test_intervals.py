"""Do the intervals of answers hold the truth as often as they say?"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from incrowd.core.coins import Coins
from incrowd.core.domain import Type
from incrowd.core.unit import Unit
from incrowd.mechanisms.vector_noise import AddCube, AddGaussianVector
from incrowd.noise.system import SystemCoins
from incrowd.queries.language.expressions.table import evaluate
from incrowd.queries.measurement import Measurement, measurement
from incrowd.queries.measuring.intervals import MISS
from incrowd.queries.measuring.statistics import Of
from incrowd.queries.query import Aggregate, AggregateKind, Value
from tests.queries.asked import PERSON, ROW, WARD, Visit, asked, collected, terms, tree
from tests.statistics.alarm import FALSE_ALARM

Floats = NDArray[np.float64]
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


CERTAIN = Value("age", Type.INTEGER, Fraction(0), Fraction(100), optional=False)
MOMENTS = (
    Aggregate("n", AggregateKind.ROWS),
    Aggregate("total", AggregateKind.SUM, CERTAIN),
    Aggregate("mean", AggregateKind.MEAN, CERTAIN),
    Aggregate("variance", AggregateKind.VARIANCE, CERTAIN),
    Aggregate("deviation", AggregateKind.DEVIATION, CERTAIN),
)
TABLES: dict[str, Callable[[int], Floats]] = {
    "even": lambda rows: np.asarray((17.0 * np.arange(rows)) % 101, dtype=np.float64),
    "zeros": np.zeros,
    "skewed": lambda rows: np.where(np.arange(rows) % max(2, rows // 3) == 0, 100.0, 0.0),
    "outlier": lambda rows: np.where(np.arange(rows) == 0, 100.0, 1.0),
}
EPSILONS = ("0.05", "0.5", "5")


def statistics_of_rows(measured: Measurement, ages: Floats) -> Floats:
    """Return what each row adds to each statistic, from the definitions of the page on noise."""
    columns = []
    for each in measured.sums.all:
        if each.grid is None:
            columns.append(np.ones(len(ages)))
            continue
        z = np.rint((ages - float(each.grid.center)) / float(each.grid.step))
        columns.append(z if each.of is Of.SUM else np.rint((2 * z**2 - each.grid.width**2) / float(each.coarse)))
    return np.stack(columns, axis=1)


def true_of(ages: Floats) -> dict[str, float]:
    spread = float(ages.var(ddof=1)) if len(ages) > 1 else 0.0
    return {"n": len(ages), "total": ages.sum(), "mean": ages.mean(), "variance": spread, "deviation": spread**0.5}


def misses_of(measured: Measurement, noisy: NDArray[np.int64], true: dict[str, float]) -> dict[str, int]:
    """Return how many intervals miss; each estimate lies in its own."""
    found = {}
    for name, column in measured._read(noisy).items():
        if column.low is None or column.high is None:
            continue
        low, high, value = (each.to_numpy() for each in (column.low, column.high, column.values))
        assert ((low <= value) & (value <= high)).all(), name
        slack = 1e-9 * (1.0 + abs(true[name]))
        found[name] = int(((low > true[name] + slack) | (high < true[name] - slack)).sum())
    return found


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_intervals_of_groups_that_passed_a_threshold_hold_for_those_that_were_shown(epsilon: str, table: str) -> None:
    """Small groups are shown by luck; the larger a group, the less the selection says."""
    wanted: list[tuple[tuple[Aggregate, ...], dict[str, str], Unit]] = [
        (MOMENTS, {"epsilon": epsilon}, ROW),
        (MOMENTS[:1], {"epsilon": epsilon}, ROW),
        (MOMENTS[1:2], {"epsilon": epsilon}, PERSON),
        (MOMENTS, {"rho": epsilon}, ROW),
    ]
    for kinds, paid, unit in wanted:
        measured = measurement(asked(kinds, (WARD,), unit), unit, terms(**paid, delta="1e-2"))
        choice, counting = measured.noise_choice, measured.sums.counting
        assert choice.noise is not None
        assert choice.threshold is not None
        least = choice.threshold.least
        for part in (Fraction(1, 2), Fraction(4, 5), Fraction(1), Fraction(5, 4), Fraction(2)):
            ages = TABLES[table](max(2, int(part * least)))
            exact = np.rint(statistics_of_rows(measured, ages).sum(axis=0)).astype(np.int64)
            noisy = choice.noise.release(np.repeat(exact[None], 2000, axis=0), COINS)
            shown = noisy[noisy[:, counting] >= least]
            missed_here = misses_of(measured, shown, true_of(ages))
            assert set(missed_here) == {each.name for each in kinds}
            limit = len(shown) * most(len(kinds) * 20, max(1, len(shown)))
            assert max(missed_here.values()) <= limit, (paid, part, len(shown), missed_here)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("rate", ["0.1", "0.5"])
def test_intervals_from_secret_samples_hold_in_small_and_skewed_groups(rate: str, epsilon: str, table: str) -> None:
    rng, trials = np.random.default_rng(), 1000
    for kinds in (MOMENTS[:3], MOMENTS[1:2]):
        measured = measurement(asked(kinds, keys=()), ROW, terms(epsilon=epsilon, rate=rate))
        noise = measured.noise_choice.noise
        assert noise is not None
        for rows in (1, 5, 30, 1000):
            ages = TABLES[table](rows)
            drawn = rng.random((trials, rows)) < float(rate)
            sums = np.rint(drawn @ statistics_of_rows(measured, ages)).astype(np.int64)
            missed_here = misses_of(measured, noise.release(sums, COINS), true_of(ages))
            assert set(missed_here) == {each.name for each in kinds}
            assert max(missed_here.values()) <= trials * most(len(kinds) * 8, trials), (rows, missed_here)


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_intervals_of_small_and_skewed_groups_hold(epsilon: str, table: str) -> None:
    for paid in ({"epsilon": epsilon}, {"rho": epsilon}):
        measured = measurement(asked(MOMENTS, keys=()), ROW, terms(**paid))
        noise = measured.noise_choice.noise
        assert noise is not None
        for rows in (1, 3, 20, 400):
            ages = TABLES[table](rows)
            exact = np.rint(statistics_of_rows(measured, ages).sum(axis=0)).astype(np.int64)
            noisy = noise.release(np.repeat(exact[None], 2000, axis=0), COINS)
            missed_here = misses_of(measured, noisy, true_of(ages))
            if rows == 1:  # one value has no variance
                missed_here |= {"variance": 0, "deviation": 0}
            assert max(missed_here.values()) <= 2000 * most(len(MOMENTS) * 8, 2000), (paid, rows, missed_here)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_computed_columns_hold_the_truth_whichever_function_they_take(epsilon: str) -> None:
    texts = {
        "logarithm": "LN(1 + n)",
        "ratio": "total / n",
        "choice": "CASE WHEN total > 100 THEN total ELSE n END",
        "sure": "CASE WHEN n < -5 THEN 0 ELSE mean END",
        "first": "COALESCE(mean, 0)",
        "grown": "EXP(mean / 100)",
        "whole": "CAST(mean AS INTEGER)",
    }
    ages = TABLES["even"](300)
    true = {"n": 300.0, "total": float(ages.sum()), "mean": float(ages.mean())}
    wanted = {name: float(evaluate(tree(text), true)) for name, text in texts.items()}
    measured = measurement(asked(MOMENTS[:3], (WARD,), outputs=texts), ROW, terms(epsilon=epsilon, delta="1e-2"))
    groups, exact = 1500, np.rint(statistics_of_rows(measured, ages).sum(axis=0)).astype(np.int64)
    sums = {f"_s{i}": np.repeat(number, groups) for i, number in enumerate(exact)}
    rows = measured.answer((pa.table({"ward": [str(i) for i in range(groups)], **sums}),), COINS).rows()
    for name, value in wanted.items():
        ends = [(row[f"{name}_low"], row[f"{name}_high"]) for row in rows]
        known = [(low, high) for low, high in ends if low is not None]
        missing = sum(not low - 1e-9 <= value <= high + 1e-9 for low, high in known)
        assert missing <= len(known) * most(len(texts), max(1, len(known))), (name, missing)
        assert len(known) > 0.9 * len(rows)


@pytest.mark.parametrize("kind", [AggregateKind.MEAN, AggregateKind.VARIANCE, AggregateKind.DEVIATION])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_what_is_expected_at_worst_holds_for_all_values_within_the_bounds(epsilon: str, kind: AggregateKind) -> None:
    """Before asking it is said how far off 95 % of answers are, at worst: skewed values and constants included."""
    measured = measurement(asked((Aggregate("x", kind, CERTAIN),), keys=()), ROW, terms(epsilon=epsilon))
    (told,), noise = measured.expected, measured.noise_choice.noise
    assert noise is not None
    assert all(worst >= typical for (_, worst), (_, typical) in zip(told.by_size, told.typical, strict=True))
    beyond = []
    for (rows, worst), (_, typical) in zip(told.by_size[1:3], told.typical[1:3], strict=True):
        ends = np.full(rows, 100.0), np.arange(rows) % 2 * 100.0
        for ages in (*(made(rows) for made in TABLES.values()), *ends):
            true = true_of(ages)[str(kind)]
            exact = np.rint(statistics_of_rows(measured, ages).sum(axis=0)).astype(np.int64)
            found = measured._read(noise.release(np.repeat(exact[None], 2000, axis=0), COINS))["x"].values.to_numpy()
            off = np.abs(found - true)
            assert int((off > worst + 1e-9).sum()) <= 2000 * most(12, 2000), (rows, worst)
            beyond.append(float((off > typical).mean()))
    assert max(beyond) > MISS or kind is AggregateKind.MEAN  # the typical case alone would guarantee too much
