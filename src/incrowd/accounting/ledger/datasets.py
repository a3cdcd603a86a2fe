"""Datasets: declared once, with one unit of privacy and one budget for the people in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from incrowd.accounting.budget import Budget
from incrowd.accounting.ledger.periods import spent_in, totals_of_periods, without_bound
from incrowd.accounting.ledger.status import BudgetStatus, DatasetTerms, Totals
from incrowd.core.calendar import PeriodCalendar
from incrowd.core.unit import Kind, Unit
from incrowd.errors import InvalidParameter, MixedUnits, Refused
from incrowd.store.chain_entry import Key

Values = Callable[[Key], Any]
Sets = dict[Key, Any]

_LONGEST = 120  # characters: a name stands in one line of `ledger show` and in every entry


@dataclass(frozen=True)
class Declaration:
    """What a policy says about a dataset when it first meets the ledger; nothing in it comes from rows.

    A dataset about the same people as another (`same_people_as`) shares its budget; one whose rows look like those of
    another but that has a budget of its own needs the owner's reason (`separate`).

    >>> Declaration("births-2025", Unit(), Budget.of(3, "1e-7")).to_json()["dataset"]
    'births-2025'
    """

    dataset: str
    unit: Unit
    budget: Budget | None = None
    same_people_as: str | None = None
    separate: str | None = None
    calendar: PeriodCalendar | None = None

    def __post_init__(self) -> None:
        if self.unit.kind is Kind.PERSON_PERIOD and self.calendar is None:
            raise InvalidParameter("the unit person in a period needs a calendar: write period: in the policy.")
        if self.same_people_as is not None and self.separate is not None:
            raise InvalidParameter("a dataset is either about the same people as another, or separate; not both.")
        if self.separate is not None and not self.separate.strip():
            raise InvalidParameter("write why this dataset is separate from the other one with the same source.")

    def to_json(self) -> dict[str, Any]:
        """Return the plain form stored in ledgers."""
        return {
            "dataset": name(self.dataset, "a dataset"),
            "unit": self.unit.to_json(),
            "budget": self.budget and self.budget.to_json(),
            "same_people_as": self.same_people_as,
            "separate": self.separate,
            **({} if self.calendar is None else {"calendar": self.calendar.to_json()}),
        }


def registered(values: Values, body: Mapping[str, Any]) -> Sets:
    """Return what registering a dataset sets; nothing if it is registered with the same terms."""
    dataset = body["dataset"]
    root, stored = _root(values, body), values(("dataset", dataset))
    if values(("dataset", root)) is None:
        budget = body["budget"] and Budget.from_json(body["budget"])
        calendar = PeriodCalendar.from_json(body["calendar"]) if "calendar" in body else None
        terms = DatasetTerms(Unit.from_json(body["unit"]), budget, budget, calendar=calendar)
        return {("dataset", root): {"root": root, **terms.to_json()}, ("spent", root): Totals().to_json()}
    _same_terms(terms_of(values, root), body, root)
    return {} if stored else {("dataset", dataset): {"root": root}}


def known_dataset(values: Values, dataset: str) -> str:
    """Return the name under which a dataset's budget is stored: its own, or that of one with the same people."""
    stored = values(("dataset", dataset))
    if stored is None:
        raise InvalidParameter(
            f"the ledger has no dataset called {dataset!r}: its first release or answer registers it, or its budget "
            "owner does, with incrowd ledger grant --new."
        )
    return str(stored["root"])


def terms_of(values: Values, root: str) -> DatasetTerms:
    """Return the terms of a registered dataset."""
    stored = values(("dataset", root))
    same, terms = _last_terms.get(root, (None, None))
    if terms is None or same is not stored:
        terms = DatasetTerms.from_json(stored)
        _last_terms[root] = stored, terms
    return terms


_last_terms: dict[str, tuple[Any, DatasetTerms]] = {}
"""The terms of each dataset with the stored value that they were read from: they are read for every charge."""


def totals_of(values: Values, root: str) -> Totals:
    """Return what was spent of a registered dataset."""
    return Totals.from_json(values(("spent", root)))


def standing_of(values: Values, root: str, label: str | None = None) -> BudgetStatus:
    """Return terms and totals of a registered dataset, and of one of its periods where one is named."""
    terms = terms_of(values, root)
    if terms.calendar is None:
        return BudgetStatus(root, terms, totals_of(values, root))
    periods = totals_of_periods(values, root)
    here = None if label is None else periods.every.plus(spent_in(values, root, label))
    bounded = label is None or not without_bound(values, root, label)
    return BudgetStatus(root, terms, totals_of(values, root), periods, here, bounded)


def after(values: Values, sets: Sets) -> Values:
    """Return the values after an entry has set some of them.

    >>> after(lambda key: None, {("looks",): 1})(("looks",))
    1
    """

    def value(key: Key) -> Any:
        return sets[key] if key in sets else values(key)

    return value


def name(text: str, what: str) -> str:
    """Return a name if it is one: short, printable, not blank.

    >>> name("births-2025", "a dataset")
    'births-2025'
    """
    if not text or len(text) > _LONGEST or not text.isprintable() or text != text.strip():
        raise InvalidParameter(f"the name of {what} is 1 to {_LONGEST} printable characters, without spaces around it.")
    return text


def _root(values: Values, body: Mapping[str, Any]) -> str:
    dataset, partner = body["dataset"], body["same_people_as"]
    stored = values(("dataset", dataset))
    partner_root = known_dataset(values, partner) if partner is not None else None
    if stored is None:
        return partner_root or dataset
    if partner_root not in (None, stored["root"]):
        raise Refused(
            f"dataset {dataset} already has a budget of its own; it cannot share that of {partner} from now on. "
            f"Register these rows under a new name with same_people_as: {partner}."
        )
    return str(stored["root"])


def _same_terms(terms: DatasetTerms, body: Mapping[str, Any], root: str) -> None:
    unit = Unit.from_json(body["unit"])
    if not unit.protects_as(terms.unit):
        raise MixedUnits(
            f"dataset {root} protects {terms.unit}; this policy says {unit}. A dataset has one unit of privacy, "
            "declared once: change the policy back."
        )
    calendar = PeriodCalendar.from_json(body["calendar"]) if "calendar" in body else None
    if calendar is not None and (terms.calendar is None or not calendar.follows(terms.calendar)):
        raise Refused(
            f"dataset {root} was registered with {terms.calendar or 'no periods'}; this policy says {calendar}. Under "
            "two calendars a row can be in two periods and be charged once: change the policy back, or register the "
            "rows under a new name with same_people_as: and no period:."
        )
    if body["budget"] is not None and Budget.from_json(body["budget"]) not in (terms.declared, terms.budget):
        raise Refused(
            f"the policy's budget for dataset {root} differs from the one in the ledger, which was set at its first "
            "charge. Change the policy back; to extend the budget, its owner uses incrowd ledger grant."
        )
