"""Budget: what was spent before, what this release spent and what is left, as parts of a bar and in numbers."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from incrowd.core.certificate import Accounting
from incrowd.core.words import short_down, short_up
from incrowd.workflows.report.odds import Odds

_DIGITS = 6


@dataclass(frozen=True)
class BarPart:
    """A part of a bar: what it stands for, where it starts and how wide it is, in percent."""

    kind: str
    start: float
    wide: float


@dataclass(frozen=True)
class BudgetBar:
    """The whole budget of ε or δ: what was spent, by this release and by all, and what is left."""

    sign: str
    spent: Decimal
    total: Decimal
    left: Decimal

    @property
    def title(self) -> str:
        """What the bar shows, for those who do not see it."""
        return (
            f"Budget of {self.sign}: this release spent {short_up(self.spent)}, all releases together "
            f"{short_up(self.total)}, left is {short_down(self.left)}"
        )

    @property
    def parts(self) -> tuple[BarPart, ...]:
        """What earlier releases spent, what this one did, and what is left."""
        amounts = (max(self.total - self.spent, Decimal(0)), min(self.spent, self.total))
        earlier, now = (100.0 * float(amount / (self.total + self.left)) for amount in amounts)
        parts = (
            BarPart("before", 0.0, earlier),
            BarPart("now", earlier, now),
            BarPart("left", earlier + now, 100.0 - earlier - now),
        )
        return tuple(part for part in parts if part.wide > 1e-9)


@dataclass(frozen=True)
class BudgetOverview:
    """The bars that can be drawn, and all amounts: spent is rounded up, left is rounded down."""

    bars: tuple[BudgetBar, ...]
    rows: tuple[tuple[str, str, str], ...]


def budget_of(accounting: Accounting) -> BudgetOverview:
    """Return what a release cost and what is left."""
    spent, total = Odds.of(accounting.spent), Odds.of(accounting.total)
    left = None if accounting.left is None else Odds.of(accounting.left)
    rest = left or Odds(Decimal(0), Decimal(0))
    bars = (
        BudgetBar("ε", spent.epsilon, total.epsilon, rest.epsilon),
        BudgetBar("δ", spent.delta, total.delta, rest.delta),
    )
    rows = [
        (name, short_up(odds.epsilon, _DIGITS), short_up(odds.delta, _DIGITS))
        for name, odds in (("Spent by this release", spent), ("Spent by all releases", total))
    ]
    if left is not None:
        rows.append(("Left", short_down(left.epsilon, _DIGITS), short_down(left.delta, _DIGITS)))
    return BudgetOverview(tuple(bar for bar in bars if bar.total.is_finite() and bar.total + bar.left > 0), tuple(rows))
