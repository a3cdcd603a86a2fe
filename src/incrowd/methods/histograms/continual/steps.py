"""Steps of running counts: in how many periods somebody is counted, and noise that is planned for all periods."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.loss import ZeroConcentrated
from incrowd.core.steps.counts import noise_claim
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee, assumptions
from incrowd.core.terms import Assumption, Condition, Theorem
from incrowd.core.unit import Adjacency, Kind
from incrowd.core.words import counted
from incrowd.errors import InvalidParameter
from incrowd.methods.histograms.continual.strategies import NoiseStrategy

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim
    from incrowd.core.unit import Unit

PLANNED = Theorem(
    "series-strategy",
    "one plan for all periods: fresh integer Gaussian noise on whole-number mixtures of frozen counts",
    "Given what was published before, one person moves the mixture of period t by (Cu)_t, and fresh integer Gaussian "
    "noise costs (Cu)_t²/(2·scale²) in zero-concentrated privacy.  Over all periods that is at most D/(2·scale²): "
    "D is the largest |Cu|² over the patterns that truncation allows and their spread over cells, also when rows react "
    "to what was published.",
)
FROZEN = Condition(
    "counts-frozen",
    "every cell, also the empty ones, gets fresh noise in every period; counts of earlier periods are frozen, and no "
    "noise is stored or used twice",
)
RECOMPUTED = Condition(
    "numbers-follow", "counts, totals and windows in the written output follow from what was measured"
)
STATE_KEPT = Assumption(
    "counts-of-periods-secret", "the counts that the data holder keeps from period to period are as secret as the rows"
)


_SUBTRACTED = (
    " Somebody who withdrew is subtracted in the next period: numbers of earlier periods stay, totals and windows from "
    "then on are without that person. That this happens once for each time somebody was counted is part of D."
)


@dataclass(frozen=True)
class LimitPeriods(Step):
    """Somebody is counted in the first so many periods only, and not again too soon; a secret list enforces it."""

    kind: ClassVar[str] = "limit periods of each person"
    title: ClassVar[str] = "Limit periods per person"
    glyph: ClassVar[str | None] = "fewer"

    participations: int | None
    apart: int

    @property
    def sentence(self) -> str:
        most, gap = self.participations, self.apart
        times = "" if most is None else f" in at most {counted(most, 'period')}, the first"
        again = "" if gap == 1 else f"{' and' if times else ''} again after {counted(gap, 'period')} at the earliest"
        return f"Each person is counted{times}{again}. The data holder keeps a secret list that enforces this."

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Leave the guarantee as it is; refuse a unit for which one period's rows would decide about another's."""
        if unit.kind is not Kind.PERSON:
            raise InvalidParameter("periods per person are limited where the unit is a person over all periods.")
        return inner


@dataclass(frozen=True)
class RunningNoise(Step):
    """Fresh noise in each period on a mixture of the counts so far; the whole series was planned at once.

    `squared` is D, the largest squared change by one person; `alone`, `totals` and `windows` hold 95 % of the numbers
    of the worst period.  `together` are the same distances for all periods and cells at once, by a union bound.
    """

    kind: ClassVar[str] = "noise over periods"
    title: ClassVar[str] = "Noise planned for all periods"
    whole_series: ClassVar[bool] = True

    strategy: NoiseStrategy
    periods: int
    window: int
    participations: int | None
    apart: int
    squared: int
    scale: Fraction
    alone: int
    totals: int
    windows: int
    together: tuple[int, int, int]
    withdrawals: bool | None = None
    """Whether people can withdraw: then they are subtracted once, and D allows for that."""

    @property
    def prices_withdrawals(self) -> bool:
        return bool(self.withdrawals)

    def __post_init__(self) -> None:
        if self.squared < 1 or self.scale <= 0:
            raise InvalidParameter("noise over periods needs a positive scale, and somebody who can be counted.")

    @property
    def sentence(self) -> str:
        return (
            f"In each of {counted(self.periods, 'period')} a mixture of the counts so far gets fresh integer Gaussian "
            f"noise ({self.strategy.text}). No noise is stored or used twice. Of the numbers of the worst period, 95 % "
            f"are within {self.alone:,} of the truth for one period, {self.totals:,} for totals, {self.windows:,} for "
            f"the last {counted(self.window, 'period')}. In 95 of 100 series all numbers of a kind, of all cells and "
            f"periods at once, are within {', '.join(f'{within:,}' for within in self.together)}."
            f"{_SUBTRACTED if self.withdrawals else ''}"
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Guarantee ρ = D/(2·scale²) for the whole series; a replaced person moves more than D."""
        if unit.adjacency is not Adjacency.ADD_REMOVE:
            raise InvalidParameter("noise over periods is planned for people who are added or removed.")
        loss = ZeroConcentrated(Fraction(self.squared) / (2 * self.scale**2))
        return StepGuarantee(loss, (PLANNED,), assumptions(unit) | {STATE_KEPT})

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim differential privacy of everything published until the last period."""
        return (noise_claim("gaussian", self.scale, basis.epsilon, basis, (FROZEN, RECOMPUTED)),)
