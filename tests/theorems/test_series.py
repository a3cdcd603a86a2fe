"""Figures of releases over time: sums over periods, matrices of running counts, and releases priced together."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import combinations, pairwise, product
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

from incrowd.accounting.accountant import charge_of
from incrowd.core.domain import Categories
from incrowd.core.hierarchy.flat import Flat
from incrowd.core.loss import Crowd, Sampled, Sequence, ZeroConcentrated
from incrowd.core.schema import Column, Role, Schema
from incrowd.core.statement import Statement
from incrowd.core.table import Table
from incrowd.core.unit import Adjacency, Kind, Unit
from incrowd.engines.local.engine import LocalEngine
from incrowd.engines.readers.sources import open_source
from incrowd.errors import InvalidParameter
from incrowd.methods.histograms.continual.check import slow_squared
from incrowd.methods.histograms.continual.method import CHECK, Continual, largest_rho
from incrowd.methods.histograms.continual.running import PastPeriod, RunningRows
from incrowd.methods.histograms.continual.steps import RunningNoise
from incrowd.methods.histograms.continual.strategies import (
    ContributionPattern,
    Estimates,
    NoiseStrategy,
    matrix_of,
    sensitivity,
)
from tests.coins import ScriptedCoins
from tests.statistics.alarm import FALSE_ALARM

VECTORS: dict[str, Any] = json.loads((Path(__file__).parent / "vectors_series.json").read_text(encoding="utf-8"))
NAMES = {
    NoiseStrategy.INDEPENDENT: "independent",
    NoiseStrategy.ROOT: "root",
    NoiseStrategy.NORMALIZED_ROOT: "normalized root",
    NoiseStrategy.WINDOW_ROOT: "window root",
}
KINDS = {"periods": "each", "totals": "total", "windows": "window"}
DELTA = Fraction(1, 10**6)


@pytest.mark.parametrize("rho", ["0.001", "0.005", "0.02"])
@pytest.mark.parametrize("periods", [1, 12, 60])
def test_periods_add_up_in_rho_and_not_as_a_group(rho: str, periods: int) -> None:
    vector = VECTORS["Y1_rho"][f"rho={rho},w={periods}"]
    spend = charge_of(ZeroConcentrated(periods * Fraction(rho)), DELTA, Adjacency.ADD_REMOVE)
    assert float(spend.epsilon) == pytest.approx(vector["eps 1e-6 sum"], rel=1e-6)


def test_coefficients_of_the_root_are_those_of_the_paper() -> None:
    exact = [Fraction(text) for text in VECTORS["Y2_f"]]
    assert matrix_of(NoiseStrategy.ROOT, 12, 12)[:, 0].tolist() == [round(4096 * value) for value in exact]


@pytest.mark.parametrize("strategy", NoiseStrategy)
@pytest.mark.parametrize("periods", [12, 60, 365])
def test_variances_are_those_of_the_reference(strategy: NoiseStrategy, periods: int) -> None:
    vector = VECTORS["Y2_V"][f"{NAMES[strategy]},T={periods}"]
    matrix = matrix_of(strategy, periods, 12)
    norms = Estimates.of(matrix, tuple(range(periods)), 12).norms()
    for pattern, name in ((ContributionPattern(1, 1), "one"), (ContributionPattern(1), "every")):
        squared = sensitivity(matrix, pattern)
        for kind, short in KINDS.items():
            variance = squared * float(norms[kind].max()) ** 2
            assert variance == pytest.approx(vector[f"V_{short}_{name}"]["max"], rel=3e-3)


@pytest.mark.parametrize("periods", [60, 365])
@pytest.mark.parametrize(("participations", "apart"), [(2, 12), (5, 12), (2, 30), (5, 30)])
def test_patterns_of_the_root_are_those_of_the_reference(periods: int, participations: int, apart: int) -> None:
    vector = VECTORS["Y2_patterns"][f"root minsep b={apart},w={participations},T={periods}"]
    squared = sensitivity(matrix_of(NoiseStrategy.ROOT, periods, 12), ContributionPattern(1, participations, apart))
    assert squared / 2**24 == pytest.approx(vector, rel=3e-4)


def test_cells_do_not_help_a_matrix_with_negative_entries() -> None:
    matrix = matrix_of(NoiseStrategy.WINDOW_ROOT, 13, 12)
    first, last = matrix[:, 0], matrix[:, 12]
    one_cell, two_cells = ((first + last) ** 2).sum(), (first**2).sum() + (last**2).sum()
    assert (round(one_cell / 2**24, 3), round(two_cells / 2**24, 3)) == (2.288, 2.966)
    assert sensitivity(matrix, ContributionPattern(1, 2, 12)) >= two_cells


@pytest.mark.parametrize("strategy", NoiseStrategy)
def test_no_pattern_moves_more_than_the_sensitivity(strategy: NoiseStrategy) -> None:
    """Brute force over all sets of periods and over spreading one person's rows over two cells."""
    periods = 7
    matrix = matrix_of(strategy, periods, 3)
    for participations, apart in product((1, 2, 3, 7), (1, 2, 3)):
        allowed = [
            chosen
            for size in range(1, participations + 1)
            for chosen in combinations(range(periods), size)
            if all(later - earlier >= apart for earlier, later in pairwise(chosen))
        ]
        worst = 0
        for chosen in allowed:
            for cells in product((0, 1), repeat=len(chosen)):
                moved = [
                    matrix[:, [t for t, c in zip(chosen, cells, strict=True) if c == cell]].sum(1) for cell in (0, 1)
                ]
                worst = max(worst, sum(int((one**2).sum()) for one in moved))
        bound = sensitivity(matrix, ContributionPattern(1, participations, apart))
        assert worst <= bound
        if strategy in (NoiseStrategy.INDEPENDENT, NoiseStrategy.ROOT):
            assert worst == bound  # attained
        step = Continual(
            epsilon=Fraction(1),
            delta=DELTA,
            periods=periods,
            window=3,
            strategy=cast("Any", strategy.value),
            participations=participations,
            apart=apart,
        )
        assert slow_squared(step.choice(1).step(ContributionPattern(1, participations, apart)), 1) == bound


@pytest.mark.parametrize("strategy", NoiseStrategy)
@pytest.mark.parametrize(("participations", "apart"), [(None, 1), (3, 1), (2, 2), (1, 1)])
def test_no_withdrawals_move_more_than_d_which_is_little_more_than_the_worst(
    strategy: NoiseStrategy, participations: int | None, apart: int
) -> None:
    """Every set of periods, of later ones in which rows are taken back (or never), and of cells, of four periods."""
    matrix, pattern = matrix_of(strategy, 4, 3), ContributionPattern(1, participations, apart, withdrawals=True)
    worst = 0
    for size in range(1, pattern.most(4) + 1):
        for chosen in combinations(range(4), size):
            if any(later - earlier < apart for earlier, later in pairwise(chosen)):
                continue
            for gone in product(*(range(period + 1, 5) for period in chosen)):
                moved = [matrix[:, p] - (matrix[:, g] if g < 4 else 0) for p, g in zip(chosen, gone, strict=True)]
                for cells in product((0, 1), repeat=size):
                    sums = [sum(v for v, c in zip(moved, cells, strict=True) if c == cell) for cell in (0, 1)]
                    worst = max(worst, sum(int(np.sum(np.square(one))) for one in sums))
    bound = sensitivity(matrix, pattern)
    assert worst <= bound <= 1.25 * worst
    named = running(strategy.value, periods=4, window=3, participations=participations, apart=apart)
    step = replace(named, withdrawals=True).choice(1).step(pattern)
    assert step.squared == slow_squared(step, 1) == bound


@pytest.mark.parametrize("strategy", NoiseStrategy)
def test_intervals_hold_each_number_and_all_of_them_at_once(strategy: NoiseStrategy) -> None:
    """Errors are sums of fresh noise, so they are drawn as such; 2,000 series, of which 5 % may miss (Hoeffding)."""
    periods, series = 24, 2000
    method = running(strategy.value, periods=periods, window=6)
    step, matrix = method.choice(1).step(ContributionPattern(1)), matrix_of(strategy, periods, 6)
    estimates = Estimates.of(matrix, tuple(range(periods)), 6)
    noise = np.random.default_rng(11).normal(0, float(step.scale), (periods, series))
    slack = math.sqrt(math.log(1 / FALSE_ALARM) / (2 * series))
    kinds = (estimates.counts, estimates.totals, estimates.windows)
    for rows, alone, together in zip(kinds, (step.alone, step.totals, step.windows), step.together, strict=True):
        errors = np.abs(rows @ noise)
        worst = errors[np.argmax((rows**2).sum(axis=1))]
        assert np.mean(worst > alone) <= 0.05 + slack
        assert np.mean((errors > together).any(axis=0)) <= 0.05 + slack
        assert np.mean(worst > alone) >= 0.05 - slack  # and no wider than needed


@pytest.mark.parametrize("periods", [12, 60, 365])
def test_rounded_coefficients_have_the_d_of_the_reference(periods: int) -> None:
    matrix = matrix_of(NoiseStrategy.ROOT, periods, 12)
    squared = sensitivity(matrix, ContributionPattern(1, 1))
    assert squared == VECTORS["Y2_int"][f"T={periods}"]["b=12"]["D"]
    assert squared / 2**24 == pytest.approx(VECTORS["Y2_sum_f2"][str(periods)], rel=2e-4)


@pytest.mark.parametrize("periods", [12, 60])
def test_no_plan_has_less_mean_variance_than_the_nuclear_norm_allows(periods: int) -> None:
    place = np.arange(periods)
    sums = {"total": place[:, None] >= place, "window": (place[:, None] >= place) & (place[:, None] < place + 12)}
    for kind, name in (("total", "totals"), ("window", "windows")):
        bound = (np.linalg.svd(sums[kind].astype(float), compute_uv=False).sum() / periods) ** 2
        assert bound == pytest.approx(VECTORS["Y2_lower_mean"][str(periods)[1:]][kind], rel=1e-9)
        for strategy in NoiseStrategy:
            matrix = matrix_of(strategy, periods, 12)
            norms = Estimates.of(matrix, tuple(range(periods)), 12).norms()[name]
            assert sensitivity(matrix, ContributionPattern(1, 1)) * float((norms**2).mean()) >= bound


@pytest.mark.parametrize(("kind", "strategy"), [("totals", NoiseStrategy.ROOT), ("windows", NoiseStrategy.WINDOW_ROOT)])
@pytest.mark.parametrize("periods", [12, 60])
def test_roots_are_better_up_to_as_many_participations_as_the_reference_says(
    kind: str, strategy: NoiseStrategy, periods: int
) -> None:
    most = VECTORS["Y2_break_even_w"][f"break-even w {kind},{periods}"]

    def variance(one: NoiseStrategy, times: int) -> float:
        matrix = matrix_of(one, periods, 12)
        norm = float(Estimates.of(matrix, tuple(range(periods)), 12).norms()[kind].max())
        return sensitivity(matrix, ContributionPattern(1, times)) * norm**2

    assert variance(strategy, most) < variance(NoiseStrategy.INDEPENDENT, most)
    assert variance(strategy, most + 1) >= variance(NoiseStrategy.INDEPENDENT, most + 1)


def test_a_withdrawal_costs_what_the_reference_says_and_bands_hold_all_totals_at_once() -> None:
    matrix = matrix_of(NoiseStrategy.ROOT, 60, 12)
    once, withdrawn = (sensitivity(matrix, ContributionPattern(1, 1, withdrawals=gone)) for gone in (False, True))
    assert withdrawn / once == pytest.approx(VECTORS["Y2_withdrawn_over_D_T60"], rel=1e-5)
    step = running("root", periods=60, window=12, participations=1).choice(1).step(ContributionPattern(1, 1))
    worst = float(step.scale) * float(Estimates.of(matrix, tuple(range(60)), 12).norms()["totals"].max())
    assert step.together[1] >= VECTORS["Y2_band_T60"]["sim simultaneous"] * worst  # a union bound is never narrower


def test_rho_of_a_target_is_the_one_of_the_reference() -> None:
    assert float(largest_rho(Fraction(1), DELTA)) == pytest.approx(0.0243559703, rel=1e-7)


@pytest.mark.parametrize(("rate", "periods"), [("0.01", 12), ("0.05", 60), ("0.1", 12), ("0.1", 60), ("0.2", 60)])
def test_releases_priced_together_need_the_k_of_the_reference(rate: str, periods: int) -> None:
    k, *_ = VECTORS["Y3_k"]["product accountant: rate,T -> [k, delta(k), delta(k-1)]"][f"{rate},{periods}"]

    def price(size: int) -> Decimal:
        loss = Sequence((Sampled(Fraction(rate), Crowd(size)),) * periods)
        return charge_of(loss, DELTA, Adjacency.ADD_REMOVE).epsilon

    assert price(k) <= 1 < price(k - 1)


# The law of running counts through the real release: 3 people, 3 periods, 2 cells.

CELLS = ("a", "b")


def schema(unit: Unit) -> Schema:
    return Schema((Column("id", Role.IDENTIFIER), Column("cell", hierarchy=Flat(Categories(CELLS)))), unit)


def table(rows: list[tuple[str, str]], unit: Unit) -> Table:
    columns = {"id": [row[0] for row in rows], "cell": [row[1] for row in rows]}
    source = open_source(pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()}))
    return Table(schema(unit), source, LocalEngine())


def series(method: Continual, periods: list[list[tuple[str, str]]], unit: Unit) -> np.ndarray[Any, Any]:
    """Release all periods without noise, each with the frozen past; return what was measured, period by period."""
    return np.stack([period.measured for period in released(method, tuple(map(tuple, periods)), unit)])


PUBLISHED: dict[str, tuple[PastPeriod, ...]] = {}


def released(method: Continual, periods: tuple[tuple[tuple[str, str], ...], ...], unit: Unit) -> tuple[PastPeriod, ...]:
    """Release the last of these periods after the others; histories that begin alike share their first releases."""
    if not periods:
        return ()
    key = repr((method, periods, unit))
    if key not in PUBLISHED:
        number, past = len(periods), released(method, periods[:-1], unit)
        coins = ScriptedCoins(gaussian=[0] * 4, below=range(99))
        rows = RunningRows(table(list(periods[-1]), unit), number, str(number), past, bytes(32))
        PUBLISHED[key] = method.release(rows, coins).past
    return PUBLISHED[key]


OTHERS = [[("bob", "a"), ("eve", "b")], [("bob", "b")], [("eve", "a")]]
WHERE = (None, "a", "b")


def running(strategy: str = "root", **options: Any) -> Continual:
    limits = {"epsilon": Fraction(1), "delta": DELTA, "periods": 3, "window": 2}
    return Continual(**{**limits, "strategy": strategy, **options})


@pytest.mark.parametrize("strategy", ["independent", "normalized-root", "root", "window-root"])
@pytest.mark.parametrize("participations", [None, 1])
def test_one_person_moves_a_series_by_no_more_than_what_was_priced(strategy: str, participations: int | None) -> None:
    unit = Unit(Kind.PERSON, column="id")
    method = running(strategy, participations=participations)
    step = cast("RunningNoise", method.plan(schema(unit)).steps[-1])
    without, worst = series(method, OTHERS, unit), 0
    for places in product(WHERE, repeat=3):
        rows = [[*OTHERS[t], *([("ann", cell)] if cell else [])] for t, cell in enumerate(places)]
        worst = max(worst, int(((series(method, rows, unit) - without) ** 2).sum()))
    assert worst <= step.squared
    if strategy in ("independent", "root"):
        assert worst == step.squared


def test_a_person_in_a_period_is_no_unit_of_running_counts() -> None:
    """Why: periods are mixed, so what somebody loses in several of them grows as that of a group, and adds up to more.

    One column of the root is D of a person in a period.  Somebody in all three periods moves more than three of them.
    """
    matrix = matrix_of(NoiseStrategy.ROOT, 3, 2)
    one = sensitivity(matrix, ContributionPattern(1, 1))
    assert int((matrix.sum(axis=1) ** 2).sum()) > 3 * one
    unit = Unit(Kind.PERSON_PERIOD, column="id")
    with pytest.raises(InvalidParameter, match="as those of a group"):
        running().plan(schema(unit))
    basis = running().plan(schema(Unit(Kind.PERSON, column="id"))).basis
    forged = replace(basis, guarantee=replace(basis.guarantee, unit=unit))
    assert CHECK.contradiction(Statement(basis, (), ("cell",))) is None
    assert CHECK.contradiction(Statement(forged, (), ("cell",))) is not None


def test_counts_that_were_recomputed_from_a_corrected_file_would_cost_more_than_was_priced() -> None:
    """Why counts are frozen: a row that moves from period 1 to period 2 would enter both columns."""
    matrix = matrix_of(NoiseStrategy.ROOT, 3, 2)
    priced = sensitivity(matrix, ContributionPattern(1, 1))
    moved = np.array([matrix[0, 0], matrix[1, 1], matrix[2, 1]])  # read in period 1, then as one of period 2
    assert int((moved**2).sum()) > priced


def test_numbers_without_noise_are_the_true_ones_also_around_a_missing_period() -> None:
    unit = Unit(Kind.PERSON, column="id")
    method = running()
    past: tuple[PastPeriod, ...] = ()
    for number in (1, 3):
        coins = ScriptedCoins(gaussian=[0] * 4, below=range(99))
        output = method.release(
            RunningRows(table(OTHERS[number - 1], unit), number, f"m{number}", past, bytes(32)), coins
        )
        past = output.past
    lines = {(row["period"], row["cell"]): row for row in output.table.to_pylist()}
    assert lines["m3", "a"]["count"] == lines["m3", "a"]["window"] == 1
    assert lines["m3", "a"]["total"] == 2
    assert lines["m3", "b"]["total"] == 1


def test_truncation_counts_people_where_they_appear_first() -> None:
    unit = Unit(Kind.PERSON, column="id")
    method = running("independent", participations=1)
    again = [[("ann", "a")], [("ann", "b"), ("bob", "a")], [("ann", "a"), ("bob", "b")]]
    first = [[("ann", "a")], [("bob", "a")], []]
    assert np.array_equal(series(method, again, unit), series(running("independent"), first, unit))
    apart = running("independent", apart=2)
    assert series(apart, again, unit)[:, 0].tolist() == [4096, 4096, 4096]  # ann, bob, ann again


def test_somebody_in_every_period_gets_independent_noise_and_a_hint() -> None:
    plan = running("auto", periods=60, window=12).plan(schema(Unit(Kind.PERSON, column="id")))
    assert plan.settings["strategy"] == NoiseStrategy.INDEPENDENT.text
    assert "first appearance" in dict(plan.settings["expected"])["hint"]
    assert math.isclose(float(plan.settings["epsilon"]), 1, rel_tol=1e-6)
