"""Outlook: what all releases of a series guarantee, cost and leave, before the first of them."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from incrowd.accounting.accountant import charge_of
from incrowd.accounting.budget import Amount, Budget
from incrowd.core.unit import Kind
from incrowd.core.words import counted, short_down, short_up
from incrowd.workflows.plan.compare import pair_error
from incrowd.workflows.plan.forecast import declared_rows, expectation_of, undeclared
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
    budget: Budget | None = None
    everywhere: tuple[Decimal, Decimal] | None = None
    """What remains of the bound on all periods together, which is that of the unit for a person over all periods."""

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
            (self._everywhere, f"{_cost(self.whole)}{self._rule(spare)}"),
            *([] if self.left is None else [("remaining now", f"{_left(self.left)}{self._enough}")]),
            *self._narrow(),
            *([] if self.after is None else [("left for other things", self._afterwards)]),
            *self._expected(),
            ("next release", self.refusal or "allowed by the ledger"),
        ]

    @property
    def covered(self) -> int | None:
        """How many releases more the remaining budget covers, by sums; None where that is no question.

        For a person in a period each period has a budget of its own, so only a bound on their total counts.
        """
        if self.together or self.everywhere is None or not self.single[0].is_finite():
            return None
        return min(
            (int(rest / cost) for rest, cost in zip(self.everywhere, self.single, strict=True) if cost), default=None
        )

    @property
    def _everywhere(self) -> str:
        most = self.series.policy.participations
        return "somebody in all periods" if most is None else f"somebody in {counted(most, 'period')}, the most"

    @property
    def _open(self) -> int:
        return sum(period.state is PeriodState.OPEN for period in self.series.status())

    @property
    def after(self) -> tuple[Decimal, Decimal] | None:
        """What all open releases leave, for one unit: for a person, or for a person in one period that is open.

        None where nothing bounds it, or where the budget is not enough for them.
        """
        in_a_period = self.series.policy.schema.unit.kind is Kind.PERSON_PERIOD
        if self.left is None or not self.single[0].is_finite() or self.refusal is not None:
            return None
        if self.together:
            need = (Decimal(0), Decimal(0)) if self.series.opened else self.whole
        else:
            if self.covered is not None and self.covered < self._open:
                return None
            times = min(1, self._open) if in_a_period else self._open
            need = self.single[0] * times, self.single[1] * times
        rest = tuple(left - cost for left, cost in zip(self.left, need, strict=True))
        return (rest[0], rest[1]) if min(rest) >= 0 else None

    @property
    def _afterwards(self) -> str:
        where = " in each open period" if self.series.policy.schema.unit.kind is Kind.PERSON_PERIOD else ""
        return f"{_left(self.after or (Decimal(0), Decimal(0)))}{where}, once all periods are released"

    @property
    def _enough(self) -> str:
        if self.covered is None or self.covered >= self._open:
            return ""
        return f": enough for {self.covered:,} of {counted(self._open, 'open period')}"

    def _narrow(self) -> list[tuple[str, str]]:
        """Say of how many periods in a row a window of the budget has room, where that is not for all of them."""
        window = None if self.budget is None or self.together else self.budget.window
        if window is None or not self.single[0].is_finite():
            return []
        length, limit = window
        amounts = zip((limit.epsilon, limit.delta), self.single, strict=True)
        room = min((int(most / cost) for most, cost in amounts if cost), default=length)
        if room >= min(length, len(self.series.labels)):
            return []
        return [("window", f"room for {room:,} of any {length} periods in a row; the ledger refuses the others")]

    def _rule(self, spare: int) -> str:
        if self.together:
            more = f" and {counted(spare, 'spare run')}" if spare else ""
            return f", charged at the first period for all of them{more}; fewer are not cheaper"
        if self.series.policy.schema.unit.kind is Kind.PERSON_PERIOD:
            return ", by sums; each period is charged to itself"
        return ", by sums as they are released"

    def _expected(self) -> list[tuple[str, str]]:
        policy = self.series.policy
        settings = policy.plan.settings
        if settings.get("expected"):
            return [(str(name), str(text)) for name, text in settings["expected"]]
        if "within" in settings:
            return [("expected error", f"95 % of the counts of a period within {settings['within']}")]
        rows, expected = declared_rows(policy), expectation_of(policy)
        if expected is not None:
            return [("expected output", f"of about {rows:,} rows a period: {expected.sentence}")]
        if hasattr(policy.method, "shares") and rows is not None:
            share = 100 * pair_error(policy, rows)
            words = f"of about {rows:,} rows a period, noise misplaces about {min(100, share):.2g} % in a table of two"
            return [("expected error", f"{words} columns; later periods start from the last model")]
        unknown = undeclared(policy)
        return [] if unknown is None else [("expected output", unknown)]

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
            "after": None if self.after is None else _plain(self.after),
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
    budget, spent, left = policy.budget, Amount(), None if policy.budget is None else policy.budget.limit
    if series.ledger is not None:
        standing = series.ledger.standing(declaration_of(policy))
        budget, spent, left = standing.terms.budget, standing.totals.spent, standing.left
    everywhere = left
    if policy.schema.unit.kind is Kind.PERSON_PERIOD:
        everywhere = None if budget is None or budget.total is None else budget.total.minus(spent)
    one, now, all_ = (spend.epsilon, spend.delta), _pair(left), _pair(everywhere)
    return Outlook(series, one, whole, now, series.refusal(), budget, all_)


def _pair(amount: Amount | None) -> tuple[Decimal, Decimal] | None:
    return None if amount is None else (amount.epsilon, amount.delta)
