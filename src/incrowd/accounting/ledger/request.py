"""Request: what the ledger is asked to write, and the costs of its guarantees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

from incrowd.accounting.budget import plain
from incrowd.accounting.ledger.charging import INFINITE
from incrowd.accounting.ledger.datasets import Declaration, name
from incrowd.accounting.ledger.periods import PeriodCharge
from incrowd.accounting.ledger.status import Entry, SeriesPrice
from incrowd.core.codec import encode
from incrowd.core.guarantee import Guarantee
from incrowd.core.loss import Loss, LossRule, ZeroConcentrated
from incrowd.core.rounding import round_down, round_up
from incrowd.core.unit import Adjacency
from incrowd.errors import InvalidParameter, Refused

if TYPE_CHECKING:
    from incrowd.accounting.accountant import Spend

_FREE: dict[str, Any] = {"epsilon": "0", "delta": "0", "rho": None, "rule": []}


class Price(Protocol):
    """Computes the cost of a loss, without data or ledger."""

    def spend(self, loss: Loss, delta: Fraction, adjacency: Adjacency) -> Spend:
        """Return the (ε, δ) that a loss stated at `delta` costs."""

    def rho(self, loss: Loss, adjacency: Adjacency) -> Fraction | None:
        """Return the ρ that a loss costs in a zero-concentrated account, or None if it has none."""


@dataclass(frozen=True)
class Accountant:
    """The costs by the accountant of this package.

    >>> from incrowd.core.loss import Pure
    >>> Accountant().spend(Pure(Fraction(1)), Fraction(0), Adjacency.ADD_REMOVE).epsilon
    Decimal('1')
    """

    def spend(self, loss: Loss, delta: Fraction, adjacency: Adjacency) -> Spend:
        from incrowd.accounting.accountant import charge_of

        return charge_of(loss, delta, adjacency)

    def rho(self, loss: Loss, adjacency: Adjacency) -> Fraction | None:
        from incrowd.accounting.concentrated import rho_of

        return rho_of(loss, adjacency)


@dataclass(frozen=True)
class Request:
    """A kind of entry, its body and the datasets it is about; `refusal` if its cost cannot be computed.

    `declared` are datasets that are registered in the same transaction, if they are new.
    """

    kind: str
    body: Mapping[str, Any]
    datasets: tuple[str, ...]
    refusal: Refused | None = None
    declared: tuple[Declaration, ...] = ()


@dataclass(frozen=True)
class Part:
    """One dataset's part of a charge: its guarantee, and the account to charge instead of the budget.

    `periods` are those whose rows alone a query reads; without any, every period is charged.
    """

    dataset: str
    guarantee: Guarantee
    account: str | None = None
    series: SeriesPrice | None = None
    periods: tuple[str, ...] = ()


PeriodsRead = Mapping[str, tuple[str, ...]]
"""The periods of each dataset whose rows alone a query reads."""


def parts_of(guarantees: Mapping[str, Guarantee], read: PeriodsRead) -> list[Part]:
    """Return the parts of a charge for a query."""
    return [Part(dataset, guarantee, periods=read.get(dataset, ())) for dataset, guarantee in guarantees.items()]


@dataclass(frozen=True)
class SeriesTerms:
    """A series before its first period: its name, the policy, how many periods and spare runs, and its guarantees.

    `single` is the guarantee of one release, `whole` that of all of them together.
    """

    name: str
    policy: str
    periods: int
    spare: int
    single: Guarantee
    whole: Guarantee


def charging(price: Price, parts: Sequence[Part], release: str, analyst: str | None, key: str | None = None) -> Request:
    """Return the request to charge all parts for one release; `key` is the digest under which it is charged once.

    >>> from incrowd.accounting.ledger.request import Accountant
    >>> from incrowd.core.loss import Pure
    >>> from incrowd.core.unit import Unit
    >>> guarantee = Guarantee(Pure(Fraction(1)), Unit(), ())
    >>> charging(Accountant(), [Part("births", guarantee)], "table 1", None).body["parts"][0]["epsilon"]
    '1'
    """
    if not parts:
        raise InvalidParameter("a charge needs at least one dataset.")
    priced = [_priced(price, part) for part in parts]
    body: dict[str, Any] = {
        "parts": [paid for paid, _ in priced],
        "release": name(release, "a release"),
        "analyst": None if analyst is None else name(analyst, "an analyst"),
    }
    if key is not None:
        body["key"] = name(key, "a key")
    refusal = next((refusal for _, refusal in priced if refusal), None)
    return Request("charge", body, tuple(part.dataset for part in parts), refusal)


def of_period(request: Request, period: PeriodCharge | None) -> Request:
    """Return the request to charge a release to one period; None leaves it to every period."""
    return request if period is None else replace(request, body={**request.body, "period": period.to_json()})


def registering(declaration: Declaration) -> Request:
    """Return the request to register a dataset."""
    return Request("register", declaration.to_json(), (declaration.dataset,))


def repeating(charged: Entry, analyst: str | None) -> Request:
    """Return the request to give an earlier answer again; parts charged to an account are omitted."""
    parts = [part for part in charged.body["parts"] if part["account"] is None and part["epsilon"] != INFINITE]
    paid = [{"dataset": part["dataset"], "epsilon": part["epsilon"], "delta": part["delta"]} for part in parts]
    body = {
        "parts": paid,
        "release": charged.body["release"],
        "analyst": None if analyst is None else name(analyst, "an analyst"),
    }
    return Request("repeat", body, tuple(part["dataset"] for part in paid))


def opening(price: Price, dataset: str, terms: SeriesTerms) -> Request:
    """Return the request to open a series: the price of all its releases together."""
    spend = price.spend(terms.whole.loss, terms.whole.delta, terms.whole.unit.adjacency)
    body = {
        "dataset": dataset,
        "series": name(terms.name, "a series"),
        "policy": terms.policy,
        "periods": terms.periods,
        "spare": terms.spare,
        "releases": terms.periods + terms.spare,
        "guarantee": terms.whole.to_json(),
        "each": terms.single.to_json(),
        "epsilon": _up(spend.epsilon),
        "delta": _up(spend.delta),
        "rule": encode(spend.rule),
    }
    return Request("series", body, (dataset,))


def carving(price: Price, dataset: str, account: str, rho: Fraction, delta: Fraction) -> Request:
    """Return the request to carve out a zero-concentrated account; ε(ρ, δ) is the same for either adjacency."""
    if rho <= 0:
        raise InvalidParameter("an account needs a rho above 0.")
    if not 0 < delta < 1:
        raise InvalidParameter("an account needs a delta strictly between 0 and 1: it turns rho into an epsilon.")
    spend = price.spend(ZeroConcentrated(rho), delta, Adjacency.ADD_REMOVE)
    paid = {"epsilon": _up(spend.epsilon), "delta": _up(spend.delta), "rule": encode(spend.rule)}
    body = {"dataset": dataset, "account": name(account, "an account"), "rho": plain(round_down(rho)), **paid}
    return Request("carve", body, (dataset,))


def signed(kind: str, dataset: str, content: Mapping[str, Any], who: str, why: str) -> Request:
    """Return a request of the budget owner, with a name and a reason."""
    if not why.strip():
        raise InvalidParameter("write why, for readers of the ledger.")
    return Request(kind, {"dataset": dataset, **content, "who": name(who, "a person"), "why": why}, (dataset,))


def _priced(price: Price, part: Part) -> tuple[dict[str, Any], Refused | None]:
    stated = {"dataset": part.dataset, "guarantee": part.guarantee.to_json(), "account": part.account, **_FREE}
    if part.periods:
        stated["periods"] = list(part.periods)
    if part.series is not None:
        return {**stated, "rule": encode(part.series.rule), "series": part.series.to_json()}, None
    try:
        return stated | (_spend(price, part.guarantee) if part.account is None else _draw(price, part.guarantee)), None
    except Refused as refusal:
        return stated, refusal


def _spend(price: Price, guarantee: Guarantee) -> dict[str, Any]:
    spend = price.spend(guarantee.loss, guarantee.delta, guarantee.unit.adjacency)
    return {"epsilon": _up(spend.epsilon), "delta": _up(spend.delta), "rule": encode(spend.rule)}


def _draw(price: Price, guarantee: Guarantee) -> dict[str, Any]:
    rho = price.rho(guarantee.loss, guarantee.unit.adjacency)
    if rho is None:
        raise Refused(
            "this guarantee has no finite rho, so it cannot be charged to a zero-concentrated account. Charge it to "
            "the budget, without an account."
        )
    return {"rho": plain(round_up(rho)), "rule": [LossRule.ACCOUNT.value]}


def _up(amount: Decimal) -> str:
    return INFINITE if amount == Decimal(INFINITE) else plain(round_up(amount))
