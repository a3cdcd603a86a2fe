"""Periods of a policy: its calendar, the budget over periods, and what a series of releases costs together."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from incrowd.accounting.budget import Amount, Budget
from incrowd.core.calendar import Every, PeriodCalendar, Undated
from incrowd.core.domain import Type
from incrowd.core.guarantee import Guarantee, in_sequence
from incrowd.core.plan import Method
from incrowd.core.schema import Schema
from incrowd.core.terms import Theorem
from incrowd.core.unit import Kind
from incrowd.errors import InvalidParameter, Refused

if TYPE_CHECKING:
    from incrowd.workflows.policy.sections import BudgetSection, PeriodSection

MOST_RELEASES = 4000
FIXED = Theorem(
    "series-fixed-in-advance",
    "releases whose number and parameters were fixed before the first, composed as one plan",
    "A person in every period takes part in every release of the series.  The number of releases and the parameters of "
    "each were fixed before the first one, so their loss distributions are convolved.  Stopping early costs the same.",
)
_LARGEST_K = 1_000_000
_STEPS = 24


def calendar_of(section: PeriodSection, schema: Schema) -> PeriodCalendar:
    """Return the calendar that a policy declares, or refuse one that its columns cannot follow."""
    calendar = PeriodCalendar(
        section.column,
        Every(section.every),
        str(section.first),
        str(section.last),
        section.zone,
        Undated(section.missing),
        section.arrival,
    )
    for name in filter(None, (calendar.column, calendar.arrival)):
        schema[name]
    decides = schema[calendar.decides]
    if decides.type not in (Type.DATE, Type.TEXT):
        raise InvalidParameter(f"the period is read from {decides.name!r}: its type is date, or text with moments.")
    if decides.type is Type.DATE and calendar.zone is not None:
        raise InvalidParameter(f"{decides.name!r} holds days, which have no time zone: leave zone out.")
    if decides.type is Type.TEXT and calendar.zone is None:
        raise InvalidParameter(
            f"{decides.name!r} holds moments, and the zone decides in which period one lies: write zone:, such as "
            "Europe/Berlin; for days, declare type: date."
        )
    if schema.unit.kind is Kind.ROW:
        raise InvalidParameter(
            "period: needs to know whose rows these are, because the same people return: name the person ID column at "
            "dataset: unit: column:."
        )
    return calendar


def budget_of(section: BudgetSection, schema: Schema, *, periods: bool) -> Budget:
    """Return the budget that a policy declares, or refuse bounds that its unit does not have."""
    in_a_period = schema.unit.kind is Kind.PERSON_PERIOD
    if not periods and (section.period or section.window or section.total):
        raise InvalidParameter("budget: period, window and total are for a table with period:.")
    if section.period is not None and in_a_period:
        raise InvalidParameter(
            "the unit is a person in a period, so epsilon and delta bound each period: leave period out."
        )
    if section.total is not None and not in_a_period:
        raise InvalidParameter(
            "the unit is a person, so epsilon and delta bound all periods together: leave total out."
        )
    return Budget(
        Amount.down(section.epsilon, section.delta),
        section.unbounded,
        period=_amount(section.period),
        window=None if section.window is None else (section.window.periods, _down(section.window)),
        total=_amount(section.total),
    )


def _amount(section: Any) -> Amount | None:
    return None if section is None else _down(section)


def _down(section: Any) -> Amount:
    return Amount.down(section.epsilon, section.delta)


def settled_method(
    method: Method, section: PeriodSection, calendar: PeriodCalendar, schema: Schema, *, purpose: bool = False
) -> Method:
    """Return the method of one release; where all are charged together, with parameters that this total affords.

    A method of running counts plans its whole series itself: how many periods there are is part of its plan, and that
    people can withdraw where the policy has a purpose.
    """
    if getattr(method, "running", False):
        return _running(method, section, calendar, purpose=purpose)
    if section.charge == "period":
        if section.participations is not None:
            raise InvalidParameter(
                "periods per person are bounded with charge: series only: releases that are charged one by one add up "
                "for all periods. Write charge: series, or leave participations out."
            )
        if section.spare:
            raise InvalidParameter("spare runs are priced with charge: series only: leave spare out.")
        return method
    if schema.unit.kind is Kind.PERSON_PERIOD:
        raise InvalidParameter(
            "a person in a period takes part in one release of a series, which is charged to that period: leave charge "
            "out, or protect a person over all periods."
        )
    releases = calendar.size + section.spare
    if releases > MOST_RELEASES:
        raise InvalidParameter(f"at most {MOST_RELEASES:,} releases are priced together.")
    return _share(method, schema, section.spare + min(calendar.size, section.participations or calendar.size))


def _running(method: Method, section: PeriodSection, calendar: PeriodCalendar, *, purpose: bool) -> Method:
    if section.participations is not None:
        raise InvalidParameter(f"{method.name} bounds periods per person itself: write participations: below release:.")
    if section.spare or (section.charge == "period" and "charge" in section.model_fields_set):
        raise InvalidParameter(f"{method.name} is one plan for all periods, charged at once and without spare runs.")
    if calendar.undated is Undated.UNKNOWN:
        raise InvalidParameter(f"{method.name} counts periods in their order: write missing: drop.")
    stated = getattr(method, "periods", None)
    if stated not in (None, calendar.size):
        raise InvalidParameter(
            f"release: periods: is {stated}, but there are {calendar.size} from {calendar.first} to {calendar.last}."
        )
    if getattr(method, "withdrawals", False) and not purpose:
        raise InvalidParameter("release: withdrawals: is for policies with a purpose, which set it: leave it out.")
    return _with(method, periods=calendar.size, withdrawals=purpose)


def _share(method: Method, schema: Schema, releases: int) -> Method:
    """Return the method at the largest loss of one release of which so many cost no more than was stated for all.

    So many are those in which one person can take part.
    """
    names = set(getattr(method, "__dataclass_fields__", ()))
    epsilon, delta = getattr(method, "epsilon", None), getattr(method, "delta", None)
    if not {"epsilon", "delta"} <= names or delta is None:
        raise InvalidParameter(
            f"charge: series prices releases by epsilon and delta, and {method.name} states none: leave charge out."
        )
    if epsilon is None:
        return method
    if "k" in names and getattr(method, "rate", None) is not None:
        return _smallest_k(method, schema, releases)
    return _largest_epsilon(method, schema, releases)


def _smallest_k(method: Method, schema: Schema, releases: int) -> Method:
    limit, delta = Fraction(method.epsilon), method.delta  # type: ignore[attr-defined]
    if getattr(method, "k", None) is not None:
        raise InvalidParameter(
            "with charge: series, give epsilon, delta and rate, and k is solved; or leave epsilon out."
        )

    def fits(k: int) -> bool:
        try:
            return _price(_with(method, k=k, epsilon=None), schema, releases, delta) <= limit
        except (InvalidParameter, Refused):  # so small a crowd has no epsilon at this delta
            return False

    high = 1
    while not fits(high):
        high *= 2
        if high > _LARGEST_K:
            raise InvalidParameter(
                f"no k makes {releases} releases at this rate cost epsilon {limit}: lower the rate, or plan fewer."
            )
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return _with(method, k=high, epsilon=None)


def _largest_epsilon(method: Method, schema: Schema, releases: int) -> Method:
    limit, delta = Fraction(method.epsilon), Fraction(method.delta)  # type: ignore[attr-defined]
    low, high = limit / (2 * releases), limit

    def at(epsilon: Fraction) -> Method:
        return _with(method, epsilon=epsilon, delta=delta / releases)

    if _price(at(low), schema, releases, delta) > limit:
        raise InvalidParameter(f"{releases} releases of {method.name} cannot cost epsilon {limit} together.")
    for _ in range(_STEPS):
        middle = ((low + high) / 2).limit_denominator(10**6)
        low, high = (middle, high) if _price(at(middle), schema, releases, delta) <= limit else (low, middle)
    return at(low)


def _price(method: Method, schema: Schema, releases: int, delta: Fraction) -> Decimal | Fraction:
    from incrowd.accounting.accountant import charge_of

    whole = whole_guarantee(method.plan(schema).guarantee, releases, delta)
    return charge_of(whole.loss, whole.delta, whole.unit.adjacency).epsilon


def whole_guarantee(single: Guarantee, releases: int, delta: Fraction) -> Guarantee:
    """Return the guarantee of so many releases together, for somebody in all of them, charged at one δ."""
    return replace(in_sequence((single,) * releases, FIXED), delta=delta)


def _with(method: Any, **changes: Any) -> Method:
    changed: Method = replace(method, **changes)
    return changed
