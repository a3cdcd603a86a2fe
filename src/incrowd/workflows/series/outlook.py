"""Outlook: what all releases of a series guarantee, cost and leave, before the first of them."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from incrowd.accounting.accountant import charge_of
from incrowd.core.unit import Kind
from incrowd.core.words import counted, short_down, short_up
from incrowd.workflows.policy.ledger import declaration_of
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.series.series import PeriodState, Series


@dataclass(frozen=True)
class Outlook:
    """A series before it is run: what one release and all of them cost, and whether the ledger allows the next one."""

    series: Series
    single: tuple[Decimal, Decimal]
    whole: tuple[Decimal, Decimal]
    left: tuple[Decimal, Decimal] | None
    refusal: str | None

    @property
    def together(self) -> bool:
        """Whether all releases are charged at once."""
        return self.series.policy.releases is not None

    @property
    def lines(self) -> list[tuple[str, str]]:
        """The plan for people: names and what they say."""
        policy, calendar = self.series.policy, self.series.policy.calendar
        assert calendar is not None  # noqa: S101 - a series has one
        unit = policy.schema.unit
        spare = 0 if policy.releases is None else policy.releases - calendar.size
        settings = policy.plan.settings
        solved = [(name, f"{settings[name]}") for name in ("k", "rate", "scale", "strategy") if name in settings]
        return [
            ("periods", f"{calendar.size}, {calendar.first} to {calendar.last}, {calendar}"),
            ("protects", str(unit)),
            ("method", policy.plan.method),
            *solved,
            *([] if policy.method.running else [("one release", _cost(self.single))]),
            ("somebody in all periods", f"{_cost(self.whole)}{self._rule(spare)}"),
            *([] if self.left is None else [("remaining now", f"{_left(self.left)}{self._enough}")]),
            *self._expected(),
            ("next release", self.refusal or "allowed by the ledger"),
        ]

    @property
    def covered(self) -> int | None:
        """How many releases more the remaining budget covers, by sums; None where that is no question.

        For a person in a period each period has a budget of its own, so only a bound on their total counts.
        """
        policy = self.series.policy
        in_a_period = policy.schema.unit.kind is Kind.PERSON_PERIOD
        if self.together or self.left is None or not self.single[0].is_finite():
            return None
        if in_a_period and (policy.budget is None or policy.budget.total is None):
            return None
        return min((int(left / cost) for left, cost in zip(self.left, self.single, strict=True) if cost), default=None)

    @property
    def _enough(self) -> str:
        open_ones = sum(period.state is PeriodState.OPEN for period in self.series.status())
        if self.covered is None or self.covered >= open_ones:
            return ""
        return f": enough for {self.covered:,} of {counted(open_ones, 'open period')}"

    def _rule(self, spare: int) -> str:
        if self.together:
            more = f" and {counted(spare, 'spare run')}" if spare else ""
            return f", charged at the first period for all of them{more}; fewer are not cheaper"
        if self.series.policy.schema.unit.kind is Kind.PERSON_PERIOD:
            return ", by sums; each period is charged to itself"
        return ", by sums as they are released"

    def _expected(self) -> list[tuple[str, str]]:
        settings = self.series.policy.plan.settings
        lines = settings.get("expected", ())
        if lines:
            return [(str(name), str(text)) for name, text in lines]
        if "within" in settings:
            return [("expected error", f"95 % of the counts of a period within {settings['within']}")]
        return []

    @property
    def header(self) -> tuple[str, ...]:
        return ("strategy", "each period ±", "totals ±", "windows ±", "")

    @property
    def strategies(self) -> list[tuple[str, ...]]:
        """The ways to add noise that were compared, with their errors; nothing where there is one way."""
        return [tuple(map(str, row)) for row in self.series.policy.plan.settings.get("strategies", ())]

    def to_json(self) -> dict[str, Any]:
        """Return the plain form that `--json` shows."""
        policy, calendar = self.series.policy, self.series.policy.calendar
        return {
            "series": self.series.name,
            "calendar": None if calendar is None else calendar.to_json(),
            "unit": policy.schema.unit.to_json(),
            "periods": len(self.series.labels),
            "releases": policy.releases,
            "each": _plain(self.single),
            "all_periods": _plain(self.whole),
            "remaining": None if self.left is None else _plain(self.left),
            "covered": self.covered,
            "settings": {name: _text(value) for name, value in policy.plan.settings.items() if name in _SHOWN},
            "strategies": self.strategies,
            "refusal": self.refusal,
        }


_SHOWN = ("k", "rate", "scale", "strategy", "within", "epsilon", "delta", "rho")


def _text(value: Any) -> Any:
    return value if isinstance(value, int | None) else str(value)


def _plain(amounts: tuple[Decimal, Decimal]) -> dict[str, str]:
    return {"epsilon": str(amounts[0]), "delta": str(amounts[1])}


def _cost(amounts: tuple[Decimal, Decimal]) -> str:
    if not amounts[0].is_finite():
        return "no bound on the privacy loss"
    return f"epsilon {short_up(amounts[0], 6)}, delta {short_up(amounts[1], 6)}"


def _left(amounts: tuple[Decimal, Decimal]) -> str:
    return f"epsilon {short_down(amounts[0], 6)}, delta {short_down(amounts[1], 6)}"


def outlook_of(policy: Policy) -> Outlook:
    """Return the outlook of a policy's series: from the schema and the ledger, without a row."""
    series = Series.of(policy)
    guarantee = policy.plan.guarantee
    spend = charge_of(guarantee.loss, guarantee.delta, guarantee.unit.adjacency)
    price, periods = series.price(), len(series.labels)
    whole = (spend.epsilon * periods, spend.delta * periods) if price is None else (price.epsilon, price.delta)
    left = None
    if series.ledger is not None:
        standing = series.ledger.standing(declaration_of(policy)).left
        left = None if standing is None else (standing.epsilon, standing.delta)
    elif policy.budget is not None:
        left = policy.budget.limit.epsilon, policy.budget.limit.delta
    return Outlook(series, (spend.epsilon, spend.delta), whole, left, series.refusal())
