"""Budget and Allowance: how much privacy loss is allowed, for whom, until when; in exact decimals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Context, Decimal, Inexact, InvalidOperation, Overflow
from functools import lru_cache
from typing import Any

from incrowd.core.rounding import Number, exact, round_down, round_up
from incrowd.errors import InvalidParameter

ZERO = Decimal(0)
LONGEST_WINDOW = 1000

# Amounts are multiples of 10^-40 below 10^300, so 400 digits hold every sum; should one not fit, that is an error.
_EXACT = Context(prec=400, traps=[Inexact, InvalidOperation, Overflow])


@dataclass(frozen=True)
class Amount:
    """An ε and a δ that add up exactly: multiples of 10⁻⁴⁰, finite, not negative.

    >>> tenth = Amount.up("0.1", "1e-20")
    >>> tenth.plus(tenth).plus(tenth) == Amount.up("0.3", "3e-20")
    True
    """

    epsilon: Decimal = ZERO
    delta: Decimal = ZERO

    @classmethod
    def up(cls, epsilon: Number, delta: Number) -> Amount:
        """Return the amount that something costs: rounded up."""
        return cls(round_up(_not_negative(epsilon, "epsilon")), round_up(_not_negative(delta, "delta")))

    @classmethod
    def down(cls, epsilon: Number, delta: Number) -> Amount:
        """Return the amount that may be spent: rounded down."""
        return cls(round_down(_not_negative(epsilon, "epsilon")), round_down(_not_negative(delta, "delta")))

    def plus(self, other: Amount) -> Amount:
        """Return the sum, which bounds the joint loss also when a charge is chosen after seeing earlier answers.

        Source: Rogers, Roth, Ullman & Vadhan 2016, basic composition as a filter.  By induction from the last answer
        back: if after every first answer the rest is (ε′, δ′)-private, then P[(o, rest) ∈ S] is at most
        δ′ + Σ_o P[o] min(1, e^ε′ P′[rest ∈ S_o]), and the first answer adds its e^ε and its δ once.
        """
        return Amount(add(self.epsilon, other.epsilon), add(self.delta, other.delta))

    def minus(self, other: Amount) -> Amount:
        """Return what remains, never below zero."""
        return Amount(remaining(self.epsilon, other.epsilon), remaining(self.delta, other.delta))

    def worst(self, other: Amount) -> Amount:
        """Return the larger ε with the larger δ."""
        return Amount(max(self.epsilon, other.epsilon), max(self.delta, other.delta))

    def within(self, limit: Amount) -> bool:
        """Whether neither ε nor δ exceeds the limit."""
        return self.epsilon <= limit.epsilon and self.delta <= limit.delta

    def to_json(self) -> dict[str, str]:
        """Return the plain form stored in ledgers."""
        return {"epsilon": plain(self.epsilon), "delta": plain(self.delta)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Amount:
        """Read what `to_json` wrote."""
        return cls(read(stored["epsilon"]), read(stored["delta"]))


@dataclass(frozen=True)
class Budget:
    """The privacy loss that is allowed for the people in a dataset, for good.

    `unbounded` is the budget owner's reason to allow releases without an ε; they are counted, never summed.
    `separate_analysts` is the reason to believe that analysts do not share what they learn: then the budget bounds what
    each of them learns, with all releases for everyone, instead of what all of them learn together.

    Where a dataset has periods, `limit` bounds the loss of one unit: of a person over all periods, or of a person in
    one period.  `period` bounds each period, `window` any so many periods in a row, `total` the sum of all periods.

    >>> Budget.of(3, "1e-7").limit
    Amount(epsilon=Decimal('3'), delta=Decimal('1E-7'))
    """

    limit: Amount
    unbounded: str | None = None
    separate_analysts: str | None = None
    period: Amount | None = None
    window: tuple[int, Amount] | None = None
    total: Amount | None = None

    def __post_init__(self) -> None:
        if self.limit.delta >= 1:
            raise InvalidParameter("a budget's delta must stay below 1.")
        if self.window is not None and not 2 <= self.window[0] <= LONGEST_WINDOW:
            raise InvalidParameter(f"a window has 2 to {LONGEST_WINDOW:,} periods.")
        for reason in (self.unbounded, self.separate_analysts):
            if reason is not None and not reason.strip():
                raise InvalidParameter("a reason cannot be empty: write why, for readers of the certificate.")

    @classmethod
    def of(
        cls, epsilon: Number, delta: Number = 0, unbounded: str | None = None, separate_analysts: str | None = None
    ) -> Budget:
        """Return the budget a person wrote."""
        return cls(Amount.down(epsilon, delta), unbounded, separate_analysts)

    def extended(self, more: Budget) -> Budget:
        """Return the budget after a grant; bounds per period, window and in total grow by what the grant names.

        >>> Budget.of(1).extended(Budget.of("0.5", unbounded="public since 2020"))
        Budget(limit=Amount(epsilon=Decimal('1.5'), delta=Decimal('0')), unbounded='public since 2020', ...)
        """
        return replace(
            self,
            limit=self.limit.plus(more.limit),
            unbounded=more.unbounded or self.unbounded,
            separate_analysts=more.separate_analysts or self.separate_analysts,
            period=_grown(self.period, more.period),
            window=self._window(more),
            total=_grown(self.total, more.total),
        )

    def _window(self, more: Budget) -> tuple[int, Amount] | None:
        if self.window is None or more.window is None:
            return self.window
        if self.window[0] != more.window[0]:
            raise InvalidParameter(f"this budget bounds windows of {self.window[0]} periods, not of {more.window[0]}.")
        return self.window[0], self.window[1].plus(more.window[1])

    def to_json(self) -> dict[str, Any]:
        """Return the plain form stored in ledgers; bounds over periods only where there are some."""
        reasons = {"unbounded": self.unbounded, "separate_analysts": self.separate_analysts}
        stored: dict[str, Any] = {**self.limit.to_json(), **reasons}
        for name, bound in (("period", self.period), ("total", self.total)):
            if bound is not None:
                stored[name] = bound.to_json()
        if self.window is not None:
            stored["window"] = {"periods": self.window[0], **self.window[1].to_json()}
        return stored

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Budget:
        """Read what `to_json` wrote."""
        period, total = (Amount.from_json(stored[name]) if name in stored else None for name in ("period", "total"))
        window = stored.get("window")
        return cls(
            Amount.from_json(stored),
            stored["unbounded"],
            stored["separate_analysts"],
            period,
            None if window is None else (int(window["periods"]), Amount.from_json(window)),
            total,
        )


def _grown(bound: Amount | None, more: Amount | None) -> Amount | None:
    """Return a bound after a grant: one that was never set stays unset."""
    return bound if bound is None or more is None else bound.plus(more)


@dataclass(frozen=True)
class Allowance:
    """How much of a dataset's budget one analyst may use, until which day (inclusive), and how much ε in a month.

    `month` only paces: the sum over all months is bounded by `limit`, and that of all analysts by the budget.
    """

    analyst: str
    limit: Amount
    until: date | None = None
    month: Decimal | None = None

    def __post_init__(self) -> None:
        if self.month is not None and self.month > self.limit.epsilon:
            raise InvalidParameter("an allowance for a month is at most the whole allowance: raise epsilon.")

    @classmethod
    def of(
        cls,
        analyst: str,
        epsilon: Number,
        delta: Number = 0,
        until: date | None = None,
        month: Number | None = None,
    ) -> Allowance:
        """Return the allowance a person wrote.

        >>> Allowance.of("ann", "0.5").limit.epsilon
        Decimal('0.5')
        """
        paced = None if month is None else Amount.down(month, 0).epsilon
        return cls(analyst, Amount.down(epsilon, delta), until, paced)

    def to_json(self) -> dict[str, Any]:
        """Return the plain form stored in ledgers; of a month only where there is a bound."""
        return {
            **self.limit.to_json(),
            "analyst": self.analyst,
            "until": self.until.isoformat() if self.until else None,
            **({} if self.month is None else {"month": plain(self.month)}),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Allowance:
        """Read what `to_json` wrote."""
        until, month = stored["until"], stored.get("month")
        return cls(
            stored["analyst"],
            Amount.from_json(stored),
            date.fromisoformat(until) if until else None,
            None if month is None else read(month),
        )


@dataclass(frozen=True)
class AnalystSpending:
    """What one analyst spent of a dataset, and how much ε of it in the last month for which there was a bound."""

    spent: Amount = field(default_factory=Amount)
    month: str = ""
    epsilon: Decimal = ZERO

    def within(self, month: str) -> Decimal:
        """Return the ε spent in a month.

        >>> AnalystSpending(month="2026-11", epsilon=Decimal(2)).within("2026-12")
        Decimal('0')
        """
        return self.epsilon if month == self.month else ZERO

    def plus(self, need: Amount, month: str | None) -> AnalystSpending:
        """Return the spending after one more charge, in a month if it is bounded."""
        spent = self.spent.plus(need)
        return (
            AnalystSpending(spent)
            if month is None
            else AnalystSpending(spent, month, add(self.within(month), need.epsilon))
        )

    def to_json(self) -> dict[str, str]:
        """Return the plain form stored in ledgers."""
        month = {"month": self.month, "epsilon_of_month": plain(self.epsilon)} if self.month else {}
        return {**self.spent.to_json(), **month}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any] | None) -> AnalystSpending:
        """Read what `to_json` wrote; nothing was stored of somebody who spent nothing."""
        if stored is None:
            return cls()
        return cls(Amount.from_json(stored), stored.get("month", ""), read(stored.get("epsilon_of_month", "0")))


def add(one: Decimal, other: Decimal) -> Decimal:
    """Return the exact sum."""
    return _EXACT.normalize(_EXACT.add(one, other))


def remaining(limit: Decimal, spent: Decimal) -> Decimal:
    """Return the exact difference, or zero if more is spent than the limit."""
    return _EXACT.normalize(_EXACT.subtract(limit, spent)) if spent < limit else ZERO


def plain(amount: Decimal) -> str:
    """Return the exact text of an amount, for ledgers.

    >>> plain(Decimal("1E+1")), plain(Decimal("1E-9"))
    ('10', '0.000000001')
    """
    return format(amount, "f")


@lru_cache(maxsize=1024)
def read(text: str) -> Decimal:
    """Read what `plain` wrote.

    >>> read("0.000000001")
    Decimal('1E-9')
    """
    amount = Decimal(text)
    if not amount.is_finite() or amount < 0:
        raise InvalidParameter("an amount is finite and not negative.")
    return _EXACT.normalize(amount)


def _not_negative(number: Number, name: str) -> Number:
    if exact(number, name) < 0:
        raise InvalidParameter(f"{name} cannot be negative.")
    return number
