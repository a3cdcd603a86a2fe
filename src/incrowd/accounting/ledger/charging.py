"""Charging: whether a release is within its budgets, and what is spent afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from incrowd.accounting.budget import ZERO, Allowance, Amount, AnalystSpending, Budget, add, plain, read, remaining
from incrowd.accounting.ledger.composition import (
    Footprint,
    footprint,
    refuse_company,
    refuse_second_use,
    refuse_used_rows,
)
from incrowd.accounting.ledger.datasets import Sets, Values, after, known_dataset, terms_of, totals_of
from incrowd.accounting.ledger.periods import (
    PeriodBook,
    PeriodBound,
    bounds,
    draw_release,
    of_unit,
    opened,
    periods_of,
    recorded,
)
from incrowd.accounting.ledger.status import DatasetTerms, Totals
from incrowd.core.codec import parsed, reread
from incrowd.core.guarantee import Guarantee
from incrowd.core.loss import THE_ROWS, Loss
from incrowd.core.unit import Unit
from incrowd.core.words import short_down, short_up
from incrowd.errors import BudgetExceeded, InvalidParameter, MixedUnits, Refused, SampleReused
from incrowd.store.chain_entry import ChainEntry, Key, Sums

INFINITE = "Infinity"
NOTHING = Footprint(0, 0, ())
_UNBOUNDED = "this release has no epsilon: its guarantee does not bound what anyone can learn."
_BOUNDED = " A secret sample or noise would give it an epsilon."


@dataclass(frozen=True)
class _Payer:
    """What is charged: a dataset, and the analyst for whom the release is (None: for everyone)."""

    root: str
    terms: DatasetTerms
    totals: Totals
    analyst: str | None
    own: AnalystSpending
    allowance: Allowance | None
    at: str

    @property
    def month(self) -> str:
        """The month of the charge, in UTC."""
        return self.at[:7]


def charged(values: Values, body: Mapping[str, Any]) -> Sets:
    """Return what a charge sets, in all its datasets together, or refuse it as a whole."""
    parts = [(part, _guarantee(reread(part["guarantee"]))) for part in body["parts"]]
    for part, guarantee in parts:
        _same_unit(values, part["dataset"], guarantee.unit)
    sets: Sets = _key(values, body)
    for part, guarantee in parts:
        sets |= _part(after(values, sets), part, guarantee.loss, body)
    return sets


def _key(values: Values, body: Mapping[str, Any]) -> Sets:
    """Return what a key sets; one under which a charge is open, or came to a release, is refused."""
    if "key" not in body:
        return {}
    key = ("key", body["key"])
    before = values(key)
    if before is not None and (values(("concluded", before)) or (True,))[-1] is not None:
        raise Refused(f"release {before} was charged with this key already, by another process.")
    return {key: body["release"]}


def carved(values: Values, body: Mapping[str, Any]) -> Sets:
    """Return what carving a zero-concentrated account out of a budget sets: its (ε, δ) is charged at once.

    Source: Bun & Steinke 2016, Lemma 1.7: ρ adds up, also when a loss is chosen after earlier answers; and a filter
    that stops at ρ keeps the whole ρ-zCDP (Feldman & Zrnic 2021).  So the account costs ε(ρ, δ).
    """
    payer = _payer(values, body["dataset"], None, body["at"])
    key = ("account", payer.root, body["account"])
    if values(key) is not None:
        raise InvalidParameter(f"dataset {payer.root} already has an account called {body['account']!r}.")
    sets = _pay(values, payer, body, NOTHING, body)
    return {**sets, key: {"rho": body["rho"], "spent": plain(ZERO)}}


def series_opened(values: Values, body: Mapping[str, Any]) -> Sets:
    """Return what opening a series of releases sets: the (ε, δ) of all of them together is charged at once."""
    guarantee = _guarantee(reread(body["guarantee"]))
    _same_unit(values, body["dataset"], guarantee.unit)
    payer = _payer(values, body["dataset"], None, body["at"])
    new = footprint(guarantee.loss)
    refuse_company(new, payer.totals.crowds, payer.totals.unbounded)
    refuse_second_use(new, payer.root, payer.totals.charges)
    return {**opened(values, payer.root, body), **_pay(values, payer, body, new, body)}


def repeated(values: Values, body: Mapping[str, Any]) -> Sets:
    """Return what it sets to give a released answer to an analyst who was not charged for it yet.

    The rows are not read again, so the dataset is not charged.  The analyst's own allowance is charged, once.  Where
    the budget owner declared that analysts do not share answers, the budget bounds what each of them learns, so there
    the answer counts like any other.
    """
    sets: Sets = {}
    for part in body["parts"]:
        payer = _payer(after(values, sets), part["dataset"], body["analyst"], body["at"])
        paid = ("paid", payer.root, body["analyst"] or "", body["release"])
        if after(values, sets)(paid):
            continue
        sets |= _pay_again(payer, Amount.from_json(part)) | {paid: True}
    return sets


def _pay_again(payer: _Payer, need: Amount) -> Sets:
    """Charge for an answer that others were charged for; an allowance refuses first, in the words for a new one."""
    budget, totals = payer.terms.budget, payer.totals
    _within_allowance(payer, need)
    if budget is not None and budget.separate_analysts is not None:
        _within(need, _used(payer, budget), budget.limit, "the budget", payer.root)
    if payer.analyst is None:
        return {("spent", payer.root): replace(totals, everyone=totals.everyone.plus(need)).to_json()}
    own = _own_after(payer, need)
    return {
        ("analyst", payer.root, payer.analyst): own.to_json(),
        ("spent", payer.root): replace(totals, most=totals.most.worst(own.spent)).to_json(),
    }


def _part(values: Values, part: Mapping[str, Any], loss: Loss, body: Mapping[str, Any]) -> Sets:
    payer = _payer(values, part["dataset"], body["analyst"], body["at"])
    new = footprint(loss)
    refuse_company(new, payer.totals.crowds, payer.totals.unbounded)
    refuse_second_use(new, payer.root, payer.totals.charges)
    samples: Sets = {("sample", payer.root, sample): True for sample in new.samples}
    if any(values(key) for key in samples):
        raise SampleReused(
            f"an earlier release of dataset {payer.root} used the same secret sample; together they can reveal who is "
            "in it. Draw a fresh sample."
        )
    if part.get("series") is not None:
        return samples | _draw_of_series(values, payer, part, body)
    return samples | (_pay(values, payer, part, new, body) if part["account"] is None else _draw(values, payer, part))


def _pay(values: Values, payer: _Payer, part: Mapping[str, Any], new: Footprint, body: Mapping[str, Any]) -> Sets:
    """Charge the budget: refuse, or return the new totals, of periods too where the dataset has some.

    The allowance is checked before the budget.  An answer that others were charged for is refused in the same words, so
    a refusal reveals no earlier query.
    """
    if part["epsilon"] == INFINITE:
        free = _pay_unbounded(payer, new, Guarantee.from_json(part["guarantee"]).loss)
        return {**free, **_periods(values, payer, payer.terms.budget, None, body)}
    need, totals, budget = Amount.from_json(part), payer.totals, payer.terms.budget
    sets: Sets = {}
    _within_allowance(payer, need)
    if budget is None:
        budget = Budget(need)
        sets["dataset", payer.root] = {"root": payer.root, **replace(payer.terms, budget=budget).to_json()}
    for bound in _bounds(values, payer, budget, need, body):
        _within(need, bound.used, bound.limit, bound.name, payer.root)
    everyone, most = totals.everyone, totals.most
    if payer.analyst is None:
        everyone = everyone.plus(need)
    else:
        own = _own_after(payer, need)
        most = most.worst(own.spent)
        sets["analyst", payer.root, payer.analyst] = own.to_json()
    spent = totals.spent.plus(need)
    summed = replace(totals, spent=spent, everyone=everyone, most=most, charges=totals.charges + 1)
    return {**sets, ("spent", payer.root): summed.to_json(), **_periods(values, payer, budget, need, body)}


def _bounds(
    values: Values, payer: _Payer, budget: Budget, need: Amount, body: Mapping[str, Any]
) -> Iterator[PeriodBound]:
    """Yield every bound of a budget: of the unit first, then those over periods."""
    calendar, labels = payer.terms.calendar, periods_of(body)
    of_period = of_unit(values, payer.root, payer.terms.unit, labels)
    yield PeriodBound(_used(payer, budget) if of_period is None else of_period, budget.limit, "the budget")
    if calendar is not None:
        yield from bounds(values, PeriodBook(payer.root, calendar, budget), need, labels)
    if budget.total is not None:
        yield PeriodBound(payer.totals.spent, budget.total, "the budget of all periods together")


def _periods(
    values: Values, payer: _Payer, budget: Budget | None, need: Amount | None, body: Mapping[str, Any]
) -> Sets:
    calendar = payer.terms.calendar
    if calendar is not None:
        return recorded(values, PeriodBook(payer.root, calendar, budget), need, body)
    if periods_of(body) is not None:
        raise InvalidParameter(f"dataset {payer.root} has no periods: it was registered without a calendar.")
    return {}


def _draw_of_series(values: Values, payer: _Payer, part: Mapping[str, Any], body: Mapping[str, Any]) -> Sets:
    """Count one release of a series, whose price was charged when it was opened."""
    totals = replace(payer.totals, charges=payer.totals.charges + 1)
    sets = draw_release(values, payer.root, part, body) | _periods(values, payer, payer.terms.budget, Amount(), body)
    return {**sets, ("spent", payer.root): totals.to_json()}


def _pay_unbounded(payer: _Payer, new: Footprint, loss: Loss) -> Sets:
    """Allow a release without an ε where the budget owner gave a reason, and count it."""
    budget, totals = payer.terms.budget, payer.totals
    if not new.unbounded:
        raise BudgetExceeded(
            "this guarantee has no finite epsilon at its delta, so no budget covers it. State a larger delta."
        )
    if budget is None or budget.unbounded is None:
        from incrowd.core.steps.rows import drafted_cause  # loads NumPy and Arrow, which a ledger does not need

        drafted = drafted_cause(loss)
        raise BudgetExceeded(
            f"{drafted or _UNBOUNDED} The budget owner of dataset {payer.root} can allow such releases by a budget "
            f"with unbounded: and the reason (incrowd ledger grant --unbounded REASON).{'' if drafted else _BOUNDED}"
        )
    if payer.allowance is not None:
        raise BudgetExceeded(f"this release has no epsilon, and the allowance of {payer.analyst} is finite.")
    counted = replace(
        totals, charges=totals.charges + 1, unbounded=totals.unbounded + 1, crowds=totals.crowds + new.crowds
    )
    return {("spent", payer.root): counted.to_json()}


def _draw(values: Values, payer: _Payer, part: Mapping[str, Any]) -> Sets:
    """Charge an account, whose ε was charged when it was carved out: refuse too much ρ, or an expired allowance."""
    key = ("account", payer.root, part["account"])
    account = values(key)
    if account is None:
        raise InvalidParameter(f"dataset {payer.root} has no account called {part['account']!r}: carve it out first.")
    _not_ended(payer)
    need, limit, spent = read(part["rho"]), read(account["rho"]), read(account["spent"])
    total = add(spent, need)
    if total > limit:
        raise BudgetExceeded(
            f"this costs rho {short_up(need, 6)}; {short_down(remaining(limit, spent), 6)} of the account of "
            f"{short_down(limit, 6)} remains. Lower rho, or carve out another account."
        )
    totals = replace(payer.totals, charges=payer.totals.charges + 1)
    return {key: {**account, "spent": plain(total)}, ("spent", payer.root): totals.to_json()}


def _used(payer: _Payer, budget: Budget) -> Amount:
    """Return what already counts against the budget for this payer.

    Analysts are assumed to share what they learn.  If the budget owner declared that they do not, the budget bounds
    what each of them can know: their own answers, and every release for everyone.
    """
    totals = payer.totals
    if budget.separate_analysts is None:
        return totals.spent
    return totals.everyone.plus(totals.most if payer.analyst is None else payer.own.spent)


def _within_allowance(payer: _Payer, need: Amount) -> None:
    allowance = payer.allowance
    if allowance is None:
        return
    _not_ended(payer)
    _within(need, payer.own.spent, allowance.limit, f"{payer.analyst}'s allowance", payer.root)
    left = None if allowance.month is None else remaining(allowance.month, payer.own.within(payer.month))
    if left is not None and need.epsilon > left:
        raise BudgetExceeded(
            f"this costs epsilon {short_up(need.epsilon, 6)}; {short_down(left, 6)} of {payer.analyst}'s allowance for "
            f"{payer.month} remains. Lower the cost, or ask again next month (UTC)."
        )


def _own_after(payer: _Payer, need: Amount) -> AnalystSpending:
    bounded = payer.allowance is not None and payer.allowance.month is not None
    return payer.own.plus(need, payer.month if bounded else None)


def _not_ended(payer: _Payer) -> None:
    """Refuse an analyst whose allowance has expired, whatever account is charged."""
    allowance = payer.allowance
    if allowance is not None and allowance.until is not None and payer.at[:10] > allowance.until.isoformat():
        raise BudgetExceeded(
            f"the allowance of {payer.analyst} on dataset {payer.root} expired on {allowance.until}. Ask the budget "
            "owner for a new one."
        )


def _within(need: Amount, used: Amount, limit: Amount, what: str, root: str) -> None:
    left = limit.minus(used)
    if need.within(left):
        return
    over = [name for name in ("epsilon", "delta") if getattr(need, name) > getattr(left, name)]
    limits = ", and ".join(
        f"{name} {short_up(getattr(need, name), 6)}; {short_down(getattr(left, name), 6)} of {what} of "
        f"{short_down(getattr(limit, name), 6)} remains"
        for name in over
    )
    raise BudgetExceeded(
        f"this costs {limits}. Lower the cost, or ask the budget owner of dataset {root} for more: "
        "incrowd ledger grant."
    )


def _payer(values: Values, dataset: str, analyst: str | None, at: str) -> _Payer:
    root = known_dataset(values, dataset)
    terms = terms_of(values, root)
    if terms.closed:
        raise Refused(f"dataset {root} is {terms.closed}: no further release is possible.")
    if values(("sample", root, THE_ROWS)):
        refuse_used_rows(root)
    own = values(("analyst", root, analyst)) if analyst is not None else None
    allowance = values(("allowance", root, analyst)) if analyst is not None else None
    return _Payer(
        root,
        terms,
        totals_of(values, root),
        analyst,
        AnalystSpending.from_json(own),
        Allowance.from_json(allowance) if allowance else None,
        at,
    )


def _same_unit(values: Values, dataset: str, guaranteed: Unit) -> None:
    root = known_dataset(values, dataset)
    unit = terms_of(values, root).unit
    if not guaranteed.protects_as(unit):
        raise MixedUnits(
            f"dataset {root} protects {unit}; this guarantee is about {guaranteed}. State it for the dataset's unit."
        )


@lru_cache(maxsize=64)
def _guarantee(text: str) -> Guarantee:
    """Return the guarantee in a stored text; many charges in a row have the same one."""
    return Guarantee.from_json(parsed(text))


_FEW = 32
"""Up to this many datasets the totals are recomputed at every charge; with more, only by `incrowd ledger check`."""


class SpentTally:
    """The ε and δ of all finite charges, and how many charges, charges without an ε and datasets there are.

    The values hold what each dataset spent, the entries what happened.  Both give the same totals, so a lost or reset
    total is detected at the next charge.

    >>> SpentTally().total({("spent", "births"): Totals(Amount.up(1, 0), charges=2).to_json()})
    {'epsilon': '1', 'delta': '0', 'charges': 2, 'datasets': 1, 'unbounded': 0}
    """

    under: Key = ("spent",)

    def total(self, values: Mapping[Key, Any]) -> Sums:
        """Return what the datasets have spent together."""
        totals = [Totals.from_json(value) for value in values.values()]
        amount = Amount()
        for total in totals:
            amount = amount.plus(total.spent)
        return _plain(
            amount, sum(total.charges for total in totals), len(totals), sum(total.unbounded for total in totals)
        )

    def after(self, totals: Sums, link: ChainEntry) -> Sums:
        """Return what was spent after one more entry."""
        if link.kind not in ("carve", "charge", "register", "series"):
            return totals
        paid = [link.body] if link.kind in ("carve", "series") else link.body["parts"] if link.kind == "charge" else []
        finite = [part for part in paid if part["epsilon"] != INFINITE]
        amount = Amount.from_json(totals)
        for part in finite:
            amount = amount.plus(Amount.from_json(part))
        new = sum(key.startswith('["spent",') for key in link.sets) if link.kind == "register" else 0
        unbounded = totals["unbounded"] + len(paid) - len(finite)
        return _plain(amount, totals["charges"] + len(paid), totals["datasets"] + new, unbounded)

    def few(self, totals: Sums) -> bool:
        """Whether there are so few datasets that their totals can be added up at every charge."""
        return bool(totals["datasets"] <= _FEW)


def _plain(amount: Amount, charges: int, datasets: int, unbounded: int) -> Sums:
    return {**amount.to_json(), "charges": charges, "datasets": datasets, "unbounded": unbounded}
