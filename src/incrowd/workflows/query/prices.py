"""Prices: what questions cost, the most that one of them may, and what else is said of them beforehand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from typing import TYPE_CHECKING

from incrowd.accounting.budget import Amount
from incrowd.accounting.ledger.request import Accountant
from incrowd.accounting.ledger.status import Entry
from incrowd.core.guarantee import Guarantee
from incrowd.errors import InvalidParameter, Refused
from incrowd.workflows.policy.policy import Policy
from incrowd.workflows.query.request import QueryRequest

if TYPE_CHECKING:
    from sqlglot import exp

    from incrowd.queries.question import Query

_MOST_EPSILON = Fraction(1)
"""What a question of an analyst may cost if its policy does not tell."""


def price_of(guarantee: Guarantee) -> Amount:
    """Return what a guarantee costs."""
    spend = Accountant().spend(guarantee.loss, guarantee.delta, guarantee.unit.adjacency)
    return Amount.up(Fraction(spend.epsilon), Fraction(spend.delta))


def highest_price(guarantees: Iterable[Guarantee]) -> Amount:
    """Return what several datasets pay for one answer, at most."""
    return reduce(Amount.worst, map(price_of, guarantees))


def spent_by(entry: Entry) -> Amount:
    """Return what a charge took from its first dataset."""
    paid = entry.charged[0]
    return Amount(paid.epsilon, paid.delta)


def check_account(asking: QueryRequest) -> None:
    """Refuse an account that is paid otherwise than in ρ, ρ without one, and one that an analyst names.

    What was carved out was paid for at once: no allowance and no highest price would hold back who draws on it.
    """
    terms = asking.terms
    if asking.account is not None and (terms.rho is None or terms.delta):
        raise InvalidParameter("an account pays in rho alone: give rho, and neither epsilon, an error nor a delta.")
    if asking.account is None and terms.rho is not None and not terms.delta:
        raise InvalidParameter("rho alone is paid from an account: name one, or give a delta as well.")
    if asking.account is not None and asking.analyst is not None:
        raise Refused("an account is drawn on for everyone: an analyst pays with epsilon, out of an allowance.")


def check_most(policies: Sequence[Policy], guarantees: Mapping[str, Guarantee], analyst: str | None) -> None:
    """Refuse what costs more than one question may, by its policy or, of an analyst, by default.

    Several questions that are paid for as one are held to the same.
    """
    for policy in policies:
        told = policy.section.queries.most_epsilon if policy.section.queries is not None else None
        most = told if told is not None else None if analyst is None else _MOST_EPSILON
        if most is not None and policy.name in guarantees:
            cost = price_of(guarantees[policy.name])
            if Fraction(cost.epsilon) > most:
                raise Refused(
                    f"this costs epsilon {float(cost.epsilon):.6g}, and what is asked at once about {policy.name} "
                    f"may cost {float(most):g}. Pay less for it, or allow a larger error."
                )


def plan_of(queries: Sequence[exp.Query]) -> tuple[str, ...]:
    """Return the SQL that reads the rows, one text for each pass over them."""
    return tuple(query.sql(dialect="duckdb", pretty=True) for query in queries)


def caps_of(questions: Sequence[Query]) -> tuple[str, ...]:
    """Return what numbers would be of, each once, where that is not the whole table."""
    return tuple(dict.fromkeys(each.caps.sentence for each in questions if each.caps.sentence))
