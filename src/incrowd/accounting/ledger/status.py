"""Status: the budget of each dataset, what was spent and what remains, and the entries that say so."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from incrowd.accounting.budget import Allowance, Amount, AnalystSpending, Budget, plain, read, remaining
from incrowd.accounting.ledger.periods import PeriodTotals, periods_of
from incrowd.core.calendar import PeriodCalendar
from incrowd.core.codec import decode
from incrowd.core.guarantee import Guarantee
from incrowd.core.loss import LossRule
from incrowd.core.unit import Kind, Unit
from incrowd.store.chain_entry import Anchor, ChainEntry, Key
from incrowd.store.database import EntryRow
from incrowd.store.transaction import Reader

INFINITY = Decimal("Infinity")


@dataclass(frozen=True)
class DatasetTerms:
    """The terms of a dataset: its unit of privacy, the declared budget, and the budget as granted since."""

    unit: Unit
    declared: Budget | None = None
    budget: Budget | None = None  # None until the first release, whose charge then is the whole budget
    closed: str | None = None  # "closed" or "retired"
    calendar: PeriodCalendar | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the plain form stored in ledgers."""
        plain_form = {
            "unit": self.unit.to_json(),
            "declared": self.declared and self.declared.to_json(),
            "budget": self.budget and self.budget.to_json(),
            "closed": self.closed,
        }
        return plain_form if self.calendar is None else {**plain_form, "calendar": self.calendar.to_json()}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> DatasetTerms:
        """Read what `to_json` wrote."""
        declared, budget = (stored[name] and Budget.from_json(stored[name]) for name in ("declared", "budget"))
        calendar = PeriodCalendar.from_json(stored["calendar"]) if "calendar" in stored else None
        return cls(Unit.from_json(stored["unit"]), declared, budget, stored["closed"], calendar)


@dataclass(frozen=True)
class Totals:
    """What was released of a dataset so far.

    `spent` sums every finite charge; `everyone` those that were no single analyst's; `most` is the largest sum of any
    one analyst, ε and δ each for itself.  Releases without an ε are counted in `unbounded`; those among them that are
    crowd-blending also in `crowds`.
    """

    spent: Amount = field(default_factory=Amount)
    everyone: Amount = field(default_factory=Amount)
    most: Amount = field(default_factory=Amount)
    charges: int = 0
    unbounded: int = 0
    crowds: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the plain form stored in ledgers."""
        amounts = {name: getattr(self, name).to_json() for name in ("spent", "everyone", "most")}
        return {**amounts, "charges": self.charges, "unbounded": self.unbounded, "crowds": self.crowds}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Totals:
        """Read what `to_json` wrote."""
        spent, everyone, most = (Amount.from_json(stored[name]) for name in ("spent", "everyone", "most"))
        return cls(spent, everyone, most, stored["charges"], stored["unbounded"], stored["crowds"])


@dataclass(frozen=True)
class BudgetStatus:
    """Terms and totals of a dataset at one moment.

    >>> terms = DatasetTerms(Unit(), budget=Budget.of(3, "1e-7"))
    >>> BudgetStatus("births", terms, Totals(spent=Amount.up(1, 0))).left
    Amount(epsilon=Decimal('2'), delta=Decimal('1E-7'))
    """

    dataset: str
    terms: DatasetTerms
    totals: Totals
    periods: PeriodTotals | None = None
    here: Amount | None = None
    """What one period has lost, where an entry is about one: by what was charged for it and for every period."""
    here_bounded: bool = True
    """Whether all of that has an ε."""

    @property
    def epsilon(self) -> Decimal:
        """The ε of everything released so far: infinite as soon as one release had none."""
        return INFINITY if self.totals.unbounded else self.totals.spent.epsilon

    @property
    def delta(self) -> Decimal:
        """The δ of everything released so far."""
        return self.totals.spent.delta

    @property
    def left(self) -> Amount | None:
        """What remains for releases to everyone; of a period that was not charged yet; None while no budget is set."""
        if self.terms.budget is None:
            return None
        if self.terms.unit.kind is Kind.PERSON_PERIOD and self.periods is not None:
            left, total = self.terms.budget.limit.minus(self.periods.every), self.terms.budget.total
            whole = left if total is None else total.minus(self.totals.spent)
            return Amount(min(left.epsilon, whole.epsilon), min(left.delta, whole.delta))
        separate = self.terms.budget.separate_analysts is not None
        used = self.totals.everyone.plus(self.totals.most) if separate else self.totals.spent
        return self.terms.budget.limit.minus(used)

    def to_json(self) -> dict[str, Any]:
        """Return the plain form that certificates and `--json` show."""
        left = self.left
        return {
            "dataset": self.dataset,
            **self.terms.to_json(),
            **self.totals.to_json(),
            "epsilon": "Infinity" if self.totals.unbounded else self.totals.spent.to_json()["epsilon"],
            "delta": self.totals.spent.to_json()["delta"],
            "left": left and left.to_json(),
            **({} if self.periods is None else {"periods": self.periods.to_json()}),
        }


@dataclass(frozen=True)
class SeriesPrice:
    """What a series of releases cost together, at its first period, and how many releases that covers."""

    name: str
    releases: int
    epsilon: Decimal
    delta: Decimal
    rule: tuple[LossRule, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the plain form stored with each release of the series."""
        amounts = Amount(self.epsilon, self.delta).to_json()
        return {"name": self.name, "releases": self.releases, **amounts}


@dataclass(frozen=True)
class SeriesStatus:
    """A series in a ledger: its terms, and how many of its releases were drawn."""

    price: SeriesPrice
    policy: str
    periods: int
    spare: int
    draws: int
    again: int

    @classmethod
    def from_json(cls, name: str, stored: Mapping[str, Any]) -> SeriesStatus:
        """Read the stored value of a series."""
        amount, rule = Amount.from_json(stored), decode(tuple[LossRule, ...], stored["rule"])
        price = SeriesPrice(name, stored["releases"], amount.epsilon, amount.delta, rule)
        return cls(price, *(stored[key] for key in ("policy", "periods", "spare", "drawn", "again")))


@dataclass(frozen=True)
class Charged:
    """What one dataset was charged for a release: an (ε, δ) of its budget, or a ρ of an account."""

    dataset: str
    guarantee: Guarantee
    epsilon: Decimal
    delta: Decimal
    rule: tuple[LossRule, ...]
    account: str | None = None
    rho: Decimal | None = None
    series: SeriesPrice | None = None

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Charged:
        """Read a part of a stored charge."""
        rho, series = stored["rho"], stored.get("series")
        return cls(
            stored["dataset"],
            Guarantee.from_json(stored["guarantee"]),
            Decimal(stored["epsilon"]),
            Decimal(stored["delta"]),
            decode(tuple[LossRule, ...], stored["rule"]),
            stored["account"],
            None if rho is None else Decimal(rho),
            None
            if series is None
            else SeriesPrice(series["name"], series["releases"], Decimal(series["epsilon"]), Decimal(series["delta"])),
        )


@dataclass(frozen=True)
class Entry:
    """One entry of the ledger; `standings` are the statuses of its datasets right after it, if it was just written."""

    anchor: Anchor
    at: str
    kind: str
    body: Mapping[str, Any]
    standings: tuple[BudgetStatus, ...] = ()

    @classmethod
    def of(cls, link: ChainEntry, standings: tuple[BudgetStatus, ...] = ()) -> Entry:
        """Return the entry that a link of the chain holds."""
        return cls(link.anchor, link.at, link.kind, link.body, standings)

    @property
    def sequence(self) -> int:
        """The number of the entry, counted from 1."""
        return self.anchor.sequence

    @property
    def period(self) -> str | None:
        """The period that a charge is about, if it is about one."""
        labels = periods_of(self.body) if self.kind == "charge" else None
        return labels[0] if labels is not None and len(labels) == 1 else None

    @property
    def charged(self) -> tuple[Charged, ...]:
        """What each dataset was charged, if this is a charge."""
        return tuple(Charged.from_json(part) for part in self.body["parts"]) if self.kind == "charge" else ()


@dataclass(frozen=True)
class ChargeWithoutRelease:
    """A charge without a release: nothing was released, or its process is still running or was killed."""

    charge: Entry
    concluded: bool

    @property
    def state(self) -> str:
        """Its state, in words."""
        return "no release" if self.concluded else "not concluded: still running, or killed"

    def to_json(self) -> dict[str, Any]:
        """Return the plain form that `--json` shows."""
        amounts = ("dataset", "epsilon", "delta", "account", "rho")
        spent = [{name: part[name] for name in amounts if part[name] is not None} for part in self.charge.body["parts"]]
        facts = {"entry": self.charge.sequence, "at": self.charge.at, "release": self.charge.body["release"]}
        return {**facts, "analyst": self.charge.body["analyst"], "spent": spent, "state": self.state}


def unfinished(rows: Iterable[EntryRow]) -> dict[int, bool]:
    """Return the numbers of the charges without a release, in order, and whether each is concluded.

    The last entry about a release counts.  Of each row only the end of its body is read, where canonical text has
    `release`: a ledger may hold a million entries.

    >>> charge = EntryRow(2, "", "charge", '{"analyst":null,"parts":[],"release":"table 1"}', "{}", "", "")
    >>> unfinished([charge])
    {2: False}
    """
    lost: dict[str, tuple[int, bool]] = {}
    for row in rows:
        if row.kind == "charge":
            lost[_release(row.body)] = row.sequence, False
        elif row.kind == "conclude" and row.body.startswith(_NO_CERTIFICATE):
            body = json.loads(row.body)
            lost[_release(row.body)] = body["charge"], True
        elif row.kind == "conclude":
            lost.pop(_release(row.body), None)
    return dict(sorted(lost.values()))


_NO_CERTIFICATE = '{"certificate":null,'
_RELEASE = '"release":'


def _release(body: str) -> str:
    """Return the text of a release's name, quoted, from the canonical body of its charge or conclusion."""
    return body.rpartition(_RELEASE)[2]


@dataclass(frozen=True)
class AnalystShare:
    """What one analyst spent of one dataset, and the allowance if there is one."""

    dataset: str
    analyst: str
    spending: AnalystSpending
    allowance: Allowance | None

    @property
    def spent(self) -> Amount:
        """What the analyst spent, of all months."""
        return self.spending.spent

    def to_json(self) -> dict[str, Any]:
        """Return the plain form that `--json` shows."""
        allowance, spent = self.allowance and self.allowance.to_json(), self.spending.to_json()
        return {"dataset": self.dataset, "analyst": self.analyst, "spent": spent, "allowance": allowance}


@dataclass(frozen=True)
class Account:
    """A zero-concentrated account carved out of a dataset's budget."""

    dataset: str
    account: str
    rho: Decimal
    spent: Decimal

    @property
    def left(self) -> Decimal:
        """The remaining ρ."""
        return remaining(self.rho, self.spent)

    def to_json(self) -> dict[str, Any]:
        """Return the plain form that `--json` shows."""
        amounts = {"rho": plain(self.rho), "spent": plain(self.spent), "left": plain(self.left)}
        return {"dataset": self.dataset, "account": self.account, **amounts}


@dataclass(frozen=True)
class Overview:
    """One moment of a ledger; `shared` names datasets that use another's budget, `looks` counts data accesses."""

    head: Anchor
    datasets: tuple[BudgetStatus, ...]
    shared: Mapping[str, str]
    shares: tuple[AnalystShare, ...]
    accounts: tuple[Account, ...]
    looks: Mapping[str, Mapping[str, int]]

    def to_json(self) -> dict[str, Any]:
        """Return the plain form that `--json` shows."""
        return {
            "head": self.head.to_json(),
            "datasets": [standing.to_json() for standing in self.datasets],
            "shared": dict(self.shared),
            "analysts": [share.to_json() for share in self.shares],
            "accounts": [account.to_json() for account in self.accounts],
            "looks": {dataset: dict(counts) for dataset, counts in self.looks.items()},
        }


def overview(reader: Reader) -> Overview:
    """Read the status of everything in one state of the ledger."""
    datasets, totals, periods = (reader.values((name,)) for name in ("dataset", "spent", "periods"))
    roots = [key[1] for key, value in datasets.items() if value["root"] == key[1]]
    return Overview(
        reader.head,
        tuple(
            BudgetStatus(
                root,
                DatasetTerms.from_json(datasets["dataset", root]),
                Totals.from_json(totals["spent", root]),
                PeriodTotals.from_json(periods["periods", root]) if ("periods", root) in periods else None,
            )
            for root in roots
        ),
        {key[1]: value["root"] for key, value in datasets.items() if value["root"] != key[1]},
        _shares(reader.values(("analyst",)), reader.values(("allowance",))),
        tuple(
            Account(root, account, read(value["rho"]), read(value["spent"]))
            for (_, root, account), value in reader.values(("account",)).items()
        ),
        {key[1]: value for key, value in reader.values(("looks",)).items()},
    )


def _shares(spent: Mapping[Key, Any], allowances: Mapping[Key, Any]) -> tuple[AnalystShare, ...]:
    people = sorted({key[1:] for key in [*spent, *allowances]})
    return tuple(
        AnalystShare(
            root,
            analyst,
            AnalystSpending.from_json(spent.get(("analyst", root, analyst))),
            Allowance.from_json(allowance) if (allowance := allowances.get(("allowance", root, analyst))) else None,
        )
        for root, analyst in people
    )
