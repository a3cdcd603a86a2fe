"""Periods: what each period of a dataset has spent, which bounds a charge meets, and series that are charged at once.

A release of one period is charged to that period, a query that reads the rows of some periods to each of them, and
everything else (other queries, series, releases of all rows) to every period.  For a person in one period the loss is
that of the period and of what is charged to every period; for a person in several periods these add up.

Source: McSherry 2009, parallel composition, for one period; sums for several (Rogers, Roth, Ullman & Vadhan 2016, also
when a charge is chosen after earlier answers); any w periods in a row: Kellaris, Papadopoulos, Xiao & Papadias 2014.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from incrowd.accounting.budget import Amount, Budget
from incrowd.core.calendar import UNKNOWN, PeriodCalendar, Undated, neighbors_of, number_of
from incrowd.core.unit import Kind, Unit
from incrowd.errors import BudgetExceeded, InvalidParameter, Refused
from incrowd.store.chain_entry import Key

Values = Callable[[Key], Any]
Sets = dict[Key, Any]


@dataclass(frozen=True)
class PeriodTotals:
    """What was charged to every period, the largest sums of one period and of a window, and how many periods have one.

    A window is as long as the budget says; its sum leaves out what is charged to every period.  `unbounded` counts what
    was charged to every period and has no ε: nothing bounds any period then.
    """

    every: Amount = field(default_factory=Amount)
    worst: Amount = field(default_factory=Amount)
    window: Amount = field(default_factory=Amount)
    published: int = 0
    unbounded: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the plain form stored in ledgers."""
        amounts = {name: getattr(self, name).to_json() for name in ("every", "worst", "window")}
        without = {"unbounded": self.unbounded} if self.unbounded else {}
        return {**amounts, "published": self.published, **without}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any] | None) -> PeriodTotals:
        """Read what `to_json` wrote; nothing stored means nothing charged."""
        if stored is None:
            return cls()
        every, worst, window = (Amount.from_json(stored[name]) for name in ("every", "worst", "window"))
        return cls(every, worst, window, stored["published"], stored.get("unbounded", 0))


@dataclass(frozen=True)
class PeriodCharge:
    """The period that a release reads, the series it belongs to, and the policy that says so.

    `span` are the moments at which the period begins and ends, where a zone decides.  `again` says that the period was
    released before: it is then charged in sequence, never instead.
    """

    label: str
    series: str
    policy: str
    span: tuple[str, str] | None = None
    again: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the plain form stored in the body of a charge."""
        span = None if self.span is None else list(self.span)
        return {
            "label": self.label,
            "series": self.series,
            "policy": self.policy,
            "span": span,
            "again": self.again,
        }

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> PeriodCharge | None:
        """Return the period of a charge's body; None where it is charged to every period."""
        stored = body.get("period")
        if stored is None:
            return None
        span = None if stored["span"] is None else (stored["span"][0], stored["span"][1])
        return cls(stored["label"], stored["series"], stored["policy"], span, stored["again"])


def periods_of(body: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the periods that a charge is charged to; None where that is every period.

    >>> periods_of({"period": {"label": "2025-03"}}), periods_of({"reads": ["2025-03", "2025-04"]}), periods_of({})
    (('2025-03',), ('2025-03', '2025-04'), None)
    """
    if body.get("period") is not None:
        return (body["period"]["label"],)
    return tuple(body["reads"]) if body.get("reads") is not None else None


@dataclass(frozen=True)
class PeriodBound:
    """What counts against a bound already, the bound, and its name."""

    used: Amount
    limit: Amount
    name: str


@dataclass(frozen=True)
class PeriodBook:
    """A dataset with periods: the name of its budget, its calendar, and the budget if there is one."""

    root: str
    calendar: PeriodCalendar
    budget: Budget | None


def spent_in(values: Values, root: str, label: str) -> Amount:
    """Return what was charged to one period alone."""
    stored = values(("period", root, label))
    return Amount() if stored is None else Amount.from_json(stored["spent"])


def without_bound(values: Values, root: str, label: str) -> bool:
    """Whether something without an ε was charged to a period, or to every one."""
    stored = values(("period", root, label)) or {}
    return bool(stored.get("unbounded") or totals_of_periods(values, root).unbounded)


def of_unit(values: Values, root: str, unit: Unit, labels: tuple[str, ...] | None) -> Amount | None:
    """Return what one unit lost before a charge, where the unit is a person in a period; else None.

    A charge to every period meets the period that has lost most; a charge to some, the one among them that has.
    """
    if unit.kind is not Kind.PERSON_PERIOD:
        return None
    totals = totals_of_periods(values, root)
    if labels is not None and len(labels) > 1:
        raise InvalidParameter("a person in a period is protected by charges to one period, or to every one.")
    return totals.every.plus(totals.worst if labels is None else spent_in(values, root, labels[0]))


def totals_of_periods(values: Values, root: str) -> PeriodTotals:
    """Return what the periods of a dataset have spent."""
    return PeriodTotals.from_json(values(("periods", root)))


def bounds(values: Values, book: PeriodBook, need: Amount, labels: tuple[str, ...] | None) -> Iterator[PeriodBound]:
    """Yield the bounds of a budget over periods that a charge must meet beside the bound of its unit.

    A charge to several periods is a charge to each of them: a window that holds two of them must allow it twice.
    """
    root, budget, totals = book.root, book.budget, totals_of_periods(values, book.root)
    if budget is None:
        return
    if budget.period is not None:
        for one in [totals.worst] if labels is None else [spent_in(values, root, label) for label in labels]:
            yield PeriodBound(totals.every.plus(one), budget.period, "the budget of one period")
    if budget.window is not None:
        length, limit = budget.window
        for dated in [totals.window] if labels is None else _windows(values, book, need, labels):
            used = totals.every.plus(spent_in(values, root, UNKNOWN)).plus(dated)
            yield PeriodBound(used, limit, f"the budget of {length} periods in a row")


def _windows(values: Values, book: PeriodBook, need: Amount, labels: tuple[str, ...]) -> Iterator[Amount]:
    """Yield for each period the largest window with it, after what is charged to the periods before it."""
    length, sets = (0 if book.budget is None or book.budget.window is None else book.budget.window[0]), Sets()

    def after(key: Key) -> Any:
        return sets[key] if key in sets else values(key)

    for label in labels:
        dated = label != UNKNOWN
        yield (
            _largest_window(after, book.root, book.calendar, label, length)
            if dated
            else totals_of_periods(values, book.root).window
        )
        sets |= _charged_to(after, book.root, label, need)


def _charged_to(
    values: Values, root: str, label: str, need: Amount | None, span: tuple[str, str] | None = None
) -> Sets:
    """Return what a charge to one period sets there; None is a charge without an ε, which is counted."""
    stored = values(("period", root, label)) or {}
    spent = spent_in(values, root, label).plus(need or Amount())
    unbounded = stored.get("unbounded", 0) + (need is None)
    moments = stored.get("span") if span is None else list(span)
    without = {"unbounded": unbounded} if unbounded else {}
    return {("period", root, label): {"spent": spent.to_json(), "span": moments, **without}}


def recorded(values: Values, book: PeriodBook, need: Amount | None, body: Mapping[str, Any]) -> Sets:
    """Return what a charge sets for the periods of a dataset: to some periods, or to every one; None has no ε."""
    root, calendar = book.root, book.calendar
    totals, labels, charge = totals_of_periods(values, root), periods_of(body), PeriodCharge.of(body)
    if labels is None:
        unbounded = totals.unbounded + (need is None)
        summed = replace(totals, every=totals.every.plus(need or Amount()), unbounded=unbounded)
        return {("periods", root): summed.to_json()}
    for label in labels:
        if label != UNKNOWN or calendar.undated is not Undated.UNKNOWN:
            number_of(label, calendar.every)  # which refuses what is not a period; the policy says which are open
    sets = Sets() if charge is None else _run(values, root, calendar, charge, body["release"])
    for label in labels:
        new = values(("period", root, label)) is None
        sets |= _charged_to(values, root, label, need, None if charge is None else charge.span)
        spent = Amount.from_json(sets["period", root, label]["spent"])
        totals = replace(totals, worst=totals.worst.worst(spent), published=totals.published + new)

    def after(key: Key) -> Any:
        return sets[key] if key in sets else values(key)

    if book.budget is not None and book.budget.window is not None:
        for label in labels:
            if label != UNKNOWN:
                largest = _largest_window(after, root, calendar, label, book.budget.window[0])
                totals = replace(totals, window=totals.window.worst(largest))
    return {**sets, ("periods", root): totals.to_json()}


def _run(values: Values, root: str, calendar: PeriodCalendar, charge: PeriodCharge, release: str) -> Sets:
    """Return what one release of a series sets; refuse one of a closed series, and one that was made before."""
    run = ("run", root, charge.series, charge.label)
    if values(("ended", root, charge.series)):
        raise Refused(f"the series {charge.series} of dataset {root} is closed: no further period is released.")
    earlier = values(run) or []
    if bool(earlier) is not charge.again:
        raise Refused(
            f"period {charge.label} of series {charge.series} was charged before: incrowd series run returns what was "
            "published; --again releases it again, charged in sequence."
            if earlier
            else f"period {charge.label} of series {charge.series} was never released: leave out --again."
        )
    _refuse_overlap(values, root, calendar, charge)
    return {run: [*earlier, {"release": release, "policy": charge.policy}]}


def _largest_window(values: Values, root: str, calendar: PeriodCalendar, label: str, length: int) -> Amount:
    """Return the largest sum of so many periods in a row that contain one, ε and δ each for itself."""
    near = [spent_in(values, root, other) for other in neighbors_of(label, calendar.every, length - 1)]
    largest = Amount()
    for start in range(length):
        total = Amount()
        for amount in near[start : start + length]:
            total = total.plus(amount)
        largest = largest.worst(total)
    return largest


def _refuse_overlap(values: Values, root: str, calendar: PeriodCalendar, charge: PeriodCharge) -> None:
    """Refuse a period that shares moments with a neighbor: the rules of the zone changed since that was charged."""
    if charge.span is None or charge.label == UNKNOWN:
        return
    before, itself, behind = neighbors_of(charge.label, calendar.every, 1)
    stored = {label: values(("period", root, label)) for label in (before, itself, behind)}
    spans = {label: value["span"] for label, value in stored.items() if value is not None and value["span"]}
    begin, end = charge.span
    if (
        (before in spans and spans[before][1] > begin)
        or (behind in spans and spans[behind][0] < end)
        or (itself in spans and tuple(spans[itself]) != charge.span)
    ):
        raise Refused(
            f"the rules of the zone {calendar.zone} changed: period {charge.label} would share moments with one that "
            "was charged before, and a row there would be counted twice. Use the time zone data of the earlier release."
        )


def opened(values: Values, root: str, body: Mapping[str, Any]) -> Sets:
    """Return what opening a series sets; its cost is charged to every period at once, and never refunded.

    Source: the releases of a series and their number are fixed before the first, so their losses compose as one plan;
    fewer than planned is a function of the plan's outcome.
    """
    key = ("series", root, body["series"])
    if values(("ended", root, body["series"])):
        raise Refused(f"the series {body['series']} of dataset {root} is closed: nothing was charged.")
    if values(key) is not None:
        raise InvalidParameter(f"dataset {root} already has a series called {body['series']!r}.")
    if body["epsilon"] == "Infinity":
        raise BudgetExceeded("a series without an epsilon is not charged at once: release period by period.")
    terms = ("policy", "periods", "spare", "releases", "epsilon", "delta", "rule", "each")
    return {key: {**{name: body[name] for name in terms}, "drawn": 0, "again": 0}}


def draw_release(values: Values, root: str, part: Mapping[str, Any], body: Mapping[str, Any]) -> Sets:
    """Return what one release of a series sets: it costs nothing more, and there are as many as were priced."""
    charge, stated = PeriodCharge.of(body), part["series"]
    series = None if charge is None else values(("series", root, charge.series))
    if charge is None or series is None:
        raise InvalidParameter(f"dataset {root} has no such series: it is opened by its first period.")
    if series["policy"] != charge.policy or series["each"] != part["guarantee"]:
        raise Refused(changed_policy(charge.series))
    if any(stated[name] != series[name] for name in ("epsilon", "delta", "releases")):
        raise InvalidParameter("the charge states another price than its series has.")
    again = series["again"] + charge.again
    if again > series["spare"]:
        raise Refused(
            f"period {charge.label} was drawn before, and series {charge.series} has no spare run left: the period is "
            "published or missing, and stays so."
        )
    if series["drawn"] + (not charge.again) > series["periods"]:
        raise Refused(f"all {series['periods']} periods of series {charge.series} were drawn: start another series.")
    count = {"drawn": series["drawn"] + (not charge.again), "again": again}
    return {("series", root, charge.series): {**series, **count}}


def changed_policy(series: str) -> str:
    """Say that a series was charged under another version of its policy."""
    return (
        f"the policy changed since series {series} was charged: its price covers the releases that were planned then, "
        "and no others. Change the policy back, or start another series under another name."
    )


def ended(values: Values, root: str, body: Mapping[str, Any]) -> Sets:
    """Return what closing a series sets: nothing more is released in it, and nothing is refunded."""
    if values(("ended", root, body["series"])):
        raise InvalidParameter(f"series {body['series']} of dataset {root} is already closed.")
    return {("ended", root, body["series"]): True}
