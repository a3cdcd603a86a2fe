"""Continual: counts of cells over periods, with totals and windows, from one plan with fresh noise in each period."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import pyarrow as pa

from incrowd.accounting.accountant import charge_of
from incrowd.core.claims.privacy import ApproximatePrivacy
from incrowd.core.loss import ZeroConcentrated
from incrowd.core.plan import Method, Plan
from incrowd.core.schema import Schema
from incrowd.core.steps.bins import Count, ListedBins, RecodeToBins, counted
from incrowd.core.steps.rows import KeepRows, keep_rows
from incrowd.core.steps.samples import EveryRow
from incrowd.core.steps.step import fold
from incrowd.core.table import Table
from incrowd.core.unit import Adjacency, Kind, Unit
from incrowd.errors import InvalidParameter
from incrowd.mechanisms.add_noise import AddGaussian
from incrowd.methods.histograms.continual.check import RunningCheck, RunningPicture
from incrowd.methods.histograms.continual.counting import counted_period
from incrowd.methods.histograms.continual.running import (
    COLUMNS,
    DIGITS,
    KINDS,
    MEASURED,
    NUMBER,
    OWN,
    PERIOD,
    WITHIN,
    PastPeriod,
    RunningCounts,
    RunningRows,
    stacked,
)
from incrowd.methods.histograms.continual.steps import LimitPeriods, RunningNoise
from incrowd.methods.histograms.continual.strategies import (
    ContributionPattern,
    Estimates,
    NoiseStrategy,
    matrix_of,
    sensitivity,
)
from incrowd.methods.histograms.shared.partition import BinPartition
from incrowd.verifier.check import maybe, one

if TYPE_CHECKING:
    from incrowd.core.coins import Coins

EVERY_PERIOD = (
    "somebody in every period: no plan beats independent noise at the last total. Counting people at their first "
    "appearance (participations: 1) needs far less noise."
)
_WIDE = 1000  # of integer Gaussian noise this wide, sums are normal to every digit that is printed
_MOST_CELLS = 100_000
_SCALE = 1000  # scales are multiples of 1/1000, rounded up


@dataclass(frozen=True, kw_only=True)
class Continual(Method):
    """Counts of cells over periods, their totals and windows, from one plan with fresh noise in each period.

    Guarantee: (ε, δ)-differential privacy of everything published until the last period, for a person over all periods,
    by ρ-zero-concentrated privacy with ρ = D/(2·scale²).  D is the largest squared change that one person can make; it
    is computed in whole numbers.  A person in one period is refused as the unit.

    Assumes: levels and parameters were chosen without looking at the rows; the person ID column says whose a row is;
    all releases about these people go through one ledger; the counts kept from period to period stay secret.

    Source: Li, Miklau, Hay, McGregor & Rastogi 2015; Henzinger, Kalinin & Upadhyay 2025; for the noise Canonne, Kamath
    & Steinke 2020.  Given the past, what is published in period t moves by (Cu)_t, and fresh noise costs
    (Cu)_t²/(2·scale²); the sum is at most D/(2·scale²) on every path.

    >>> Continual(periods=60, epsilon=Fraction(1), delta=Fraction(1, 10**6), participations=1).choice(1).strategy
    <NoiseStrategy.NORMALIZED_ROOT: 'normalized-root'>
    """

    name: ClassVar[str] = "continual"
    running: ClassVar[bool] = True

    epsilon: Fraction
    delta: Fraction
    columns: tuple[str, ...] = ()
    levels: Mapping[str, int] = field(default_factory=dict)
    periods: int | None = None
    window: int = 12
    want: tuple[Literal["periods", "totals", "windows"], ...] = ("totals",)
    participations: int | None = None
    apart: int = 1
    strategy: Literal["auto", "independent", "normalized-root", "root", "window-root"] = "auto"
    withdrawals: bool = False

    def __post_init__(self) -> None:
        if not self.want or not set(self.want) <= set(KINDS):
            raise InvalidParameter(f"want: lists what matters most: {', '.join(KINDS)}.")
        if self.window < 2:
            raise InvalidParameter("a window has at least 2 periods.")
        if self.epsilon <= 0 or not 0 < self.delta < 1:
            raise InvalidParameter("running counts need an epsilon above 0, and a delta between 0 and 1, such as 1e-6.")

    def pattern(self, unit: Unit) -> ContributionPattern:
        """Return the largest pattern of one person, which truncation enforces; or refuse a unit that has none."""
        if unit.adjacency is not Adjacency.ADD_REMOVE:
            raise InvalidParameter("running counts need add-remove adjacency: leave adjacency out.")
        if unit.kind is Kind.PERSON_PERIOD:
            raise InvalidParameter(
                "running counts mix periods, so for somebody in several of them the losses would grow with the square "
                "of their number, as those of a group: protect a person over all periods (leave per: period out), or "
                "release each period with another method."
            )
        if self.withdrawals and (unit.max_rows > 1 or unit.more is not None):
            raise InvalidParameter(
                "somebody who withdraws is subtracted, so one row of each person counts in a period: max_rows: 1, "
                "without more."
            )
        return ContributionPattern(unit.max_rows, self.participations, self.apart, self.withdrawals)

    def choice(self, rows: int, pattern: ContributionPattern | None = None) -> StrategyChoice:
        """Return the strategy of least variance for what is wanted, and the others beside it."""
        periods = self.periods
        if periods is None:
            raise InvalidParameter("running counts need the number of periods: write period: with first and last.")
        limits = pattern or ContributionPattern(rows, self.participations, self.apart, self.withdrawals)
        chosen = next((strategy for strategy in NoiseStrategy if strategy.value == self.strategy), None)
        return choose(
            SeriesRequest(periods, min(self.window, periods), self.want, limits, chosen), self.epsilon, self.delta
        )

    def partition(self, schema: Schema) -> BinPartition:
        """Return the cells: all are declared, so that empty ones get noise, too."""
        partition = BinPartition.of(schema, self.columns, self.levels)
        own = set(OWN) & set(partition.cells.names)
        if own:
            raise InvalidParameter(f"running counts have a column {min(own)!r} of their own: leave that column out.")
        if partition.closed_size("count other columns") > _MOST_CELLS:
            raise InvalidParameter(f"running counts have at most {_MOST_CELLS:,} cells: choose higher levels.")
        return partition

    def plan(self, schema: Schema) -> Plan:
        """Guarantee the whole series from the schema alone."""
        unit, partition = schema.unit, self.partition(schema)
        pattern = self.pattern(unit)
        choice = self.choice(unit.max_rows, pattern)
        truncated = pattern.participations is not None or pattern.apart > 1
        steps = (
            *([LimitPeriods(pattern.participations, pattern.apart)] if truncated else []),
            *keep_rows(unit),
            EveryRow(),
            *counted(partition.cells, partition.columns(), ListedBins.ALL),
            choice.step(pattern, partition.closed_size("count other columns")),
        )
        guarantee = fold(steps, unit, self.delta)
        spend = charge_of(guarantee.loss, self.delta, unit.adjacency)
        settings = {
            "scale": choice.scale,
            "epsilon": spend.epsilon,
            "delta": self.delta,
            "rho": choice.rho,
            "strategy": choice.strategy.text,
            "strategies": choice.table(),
            "expected": choice.expected(pattern),
        }
        numbers = {"epsilon": spend.epsilon}
        return Plan(self.name, steps, guarantee, numbers, self.release, settings=settings, cells=partition.cells)

    def release(self, rows: Table | RunningRows, coins: Coins) -> RunningCounts:
        """Count the period, mix the frozen counts of earlier ones in, add fresh noise, and compute what was asked."""
        running = RunningRows.of(rows)
        table = running.table
        partition, pattern = self.partition(table.schema), self.pattern(table.schema.unit)
        choice = self.choice(table.schema.unit.max_rows, pattern)
        matrix = matrix_of(choice.strategy, choice.periods, choice.window)
        if not 1 <= running.number <= choice.periods:
            raise InvalidParameter(f"period {running.number} is beyond the {choice.periods} that were planned.")
        period = counted_period(running, partition, pattern, coins)
        counts = period.counts
        place = running.number - 1
        earlier = stacked([period.counts for period in running.past])
        weights = matrix[place, [period.number - 1 for period in running.past]]
        mixed = matrix[place, place] * counts + (weights @ earlier if len(running.past) else 0)
        measured = AddGaussian(choice.scale).release(mixed, coins)
        present = (*running.past, replace(period, measured=measured))
        return RunningCounts(estimated(present, choice, partition), present)


def estimated(present: tuple[PastPeriod, ...], choice: StrategyChoice, partition: BinPartition) -> pa.Table:
    """Return all periods as a table: what was measured, the numbers that follow from it, and how far off they are."""
    places = tuple(period.number - 1 for period in present)
    measured = stacked([period.measured for period in present])
    matrix = matrix_of(choice.strategy, choice.periods, choice.window)
    estimates = Estimates.of(matrix, places, choice.window)
    size = measured.shape[1]
    labeled = partition.labeled(np.arange(size), np.zeros(size, np.int64))
    names = [name for name in labeled.column_names if name != "count"]
    table = pa.concat_tables([labeled.select(names)] * len(present)).combine_chunks()
    columns = {
        PERIOD: pa.array([period.label for period in present for _ in range(size)], pa.string()),
        NUMBER: pa.array(np.repeat([period.number for period in present], size), pa.int64()),
        **{name: table[name] for name in names},
        MEASURED: pa.array(measured.reshape(-1)),
    }
    for kind, rows in (("periods", estimates.counts), ("totals", estimates.totals), ("windows", estimates.windows)):
        columns[COLUMNS[kind]] = pa.array(np.round(rows @ measured, DIGITS).reshape(-1))
    for kind, norms in estimates.norms().items():
        widths = np.ceil(_factor(choice.scale) * float(choice.scale) * norms * 10**DIGITS) / 10**DIGITS
        columns[WITHIN[kind]] = pa.array(np.repeat(widths, size))
    return pa.table(columns)


@dataclass(frozen=True)
class SeriesRequest:
    """What a series is planned for: how many periods, which numbers matter, and the largest pattern of a person."""

    periods: int
    window: int
    want: tuple[str, ...]
    pattern: ContributionPattern
    strategy: NoiseStrategy | None


@dataclass(frozen=True)
class Alternative:
    """One strategy: its D, and the largest standard error of each kind of number, at the noise that it needs."""

    strategy: NoiseStrategy
    squared: int
    scale: Fraction
    errors: tuple[float, float, float]


@dataclass(frozen=True)
class StrategyChoice:
    """The strategy that was chosen, its noise, and all that were compared."""

    request: SeriesRequest
    chosen: Alternative
    others: tuple[Alternative, ...]

    @property
    def strategy(self) -> NoiseStrategy:
        return self.chosen.strategy

    @property
    def periods(self) -> int:
        return self.request.periods

    @property
    def window(self) -> int:
        return self.request.window

    @property
    def scale(self) -> Fraction:
        return self.chosen.scale

    @property
    def rho(self) -> Fraction:
        return Fraction(self.chosen.squared) / (2 * self.chosen.scale**2)

    def step(self, pattern: ContributionPattern, cells: int = 1) -> RunningNoise:
        """Return the step that adds the noise, with the interval of each kind of number, alone and all at once."""
        alone, totals, windows = (math.ceil(_factor(self.scale) * error) for error in self.chosen.errors)
        factor = _factor(self.scale, self.periods * cells)
        all_counts, all_totals, all_windows = (math.ceil(factor * error) for error in self.chosen.errors)
        return RunningNoise(
            strategy=self.strategy,
            periods=self.periods,
            window=self.window,
            participations=pattern.participations,
            apart=pattern.apart,
            squared=self.chosen.squared,
            scale=self.scale,
            alone=alone,
            totals=totals,
            windows=windows,
            together=(all_counts, all_totals, all_windows),
            withdrawals=pattern.withdrawals or None,
        )

    def table(self) -> tuple[tuple[str, ...], ...]:
        """Return the strategies that were compared, each with the 95 % error of the worst number of each kind."""
        rows = []
        for other in self.others:
            factor = _factor(other.scale)
            errors = (f"{factor * error:,.1f}" for error in other.errors)
            rows.append((other.strategy.text, *errors, "chosen" if other == self.chosen else ""))
        return tuple(rows)

    def expected(self, pattern: ContributionPattern) -> tuple[tuple[str, str], ...]:
        """Return what to expect of the numbers, in words, and what would make them better."""
        factor = _factor(self.scale)
        names = ("each period", "totals", f"windows of {self.window}")
        errors = ", ".join(
            f"{name} ± {factor * error:,.1f}" for name, error in zip(names, self.chosen.errors, strict=True)
        )
        lines = [("expected error", f"95 % of numbers, in the worst period: {errors}")]
        if pattern.most(self.periods) == self.periods > 1 and pattern.participations is None:
            lines.append(
                (
                    "hint",
                    EVERY_PERIOD,
                )
            )
        return tuple(lines)


def _factor(scale: Fraction, numbers: int = 1) -> float:
    """Return how many standard errors so many numbers stay within, all of them in 95 % of cases.

    Noise is normal where it is wide, else bounded by its tails; of several numbers each may miss in its part of 5 %.
    """
    if scale > _WIDE:
        return NormalDist().inv_cdf(1 - 0.025 / numbers)
    return math.sqrt(2 * math.log(40 * numbers))


@lru_cache(maxsize=64)
def choose(request: SeriesRequest, epsilon: Fraction, delta: Fraction) -> StrategyChoice:
    """Return the strategy whose variances are nearest to the least ones, for all kinds of numbers that matter.

    Where one kind matters, that is the least variance of its worst number.
    """
    rho = largest_rho(epsilon, delta)
    alternatives = tuple(_alternative(strategy, request, rho) for strategy in NoiseStrategy)
    places = [KINDS.index(kind) for kind in request.want]
    least = [min(other.errors[place] for other in alternatives) for place in places]

    def worse(other: Alternative) -> float:
        return max(other.errors[place] / low for place, low in zip(places, least, strict=True))

    chosen = min(alternatives, key=worse)
    if request.strategy is not None:
        chosen = next(other for other in alternatives if other.strategy is request.strategy)
    return StrategyChoice(request, chosen, alternatives)


def _alternative(strategy: NoiseStrategy, request: SeriesRequest, rho: Fraction) -> Alternative:
    matrix = matrix_of(strategy, request.periods, request.window)
    squared = sensitivity(matrix, request.pattern)
    square = squared / (2 * rho) * _SCALE**2
    scale = Fraction(math.isqrt(math.ceil(square) - 1) + 1, _SCALE)  # the root, rounded up
    norms = Estimates.of(matrix, tuple(range(request.periods)), request.window).norms()
    alone, totals, windows = (float(scale) * float(norms[kind].max()) for kind in KINDS)
    return Alternative(strategy, squared, scale, (alone, totals, windows))


@lru_cache(maxsize=64)
def largest_rho(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the largest ρ, to nine digits and rounded down, whose ε at δ is not above a target.

    >>> round(float(largest_rho(Fraction(1), Fraction(1, 10**6))), 6)
    0.024356
    """
    low, high = 0, 1
    unit = Fraction(1, 10**12)

    def fits(number: int) -> bool:
        loss = ZeroConcentrated(number * unit)
        return Fraction(charge_of(loss, delta, Adjacency.ADD_REMOVE).epsilon) <= epsilon

    while fits(high):
        low, high = high, 2 * high
        if high * unit > 10**6:
            break
    while high - low > max(1, low // 10**9):
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    if not low:
        raise InvalidParameter("no noise of a usable size meets this epsilon and delta: allow more.")
    return low * unit


METHOD = Continual
CHECK = RunningCheck(
    order=(
        maybe(LimitPeriods),
        maybe(KeepRows),
        one(EveryRow),
        one(RecodeToBins),
        one(Count),
        one(RunningNoise),
    ),
    claims=(ApproximatePrivacy,),
)
PICTURE = RunningPicture()
