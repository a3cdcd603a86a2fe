"""Prices: what questions cost, and the most that one of them may."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import reduce

from incrowd.accounting.budget import Amount
from incrowd.accounting.ledger.request import Accountant
from incrowd.accounting.ledger.standing import Entry
from incrowd.core.guarantee import Guarantee
from incrowd.errors import Refused
from incrowd.queries.combined import Measured
from incrowd.queries.measurement import Measurement
from incrowd.workflows.policy.policy import Policy

_MOST_EPSILON = Fraction(1)
"""What a question of an analyst may cost if its policy does not tell."""


def price_of(promise: Guarantee) -> Amount:
    """Return what a promise costs."""
    spend = Accountant().spend(promise.loss, promise.delta, promise.unit.adjacency)
    return Amount.up(Fraction(spend.epsilon), Fraction(spend.delta))


def highest_price(promises: Iterable[Guarantee]) -> Amount:
    """Return what several datasets pay for one answer, at most."""
    return reduce(Amount.worst, map(price_of, promises))


def spent_by(entry: Entry) -> Amount:
    """Return what a charge took from its first dataset."""
    paid = entry.charged[0]
    return Amount(paid.epsilon, paid.delta)


def check_most(policies: Sequence[Policy], promises: Mapping[str, Guarantee], analyst: str | None) -> None:
    """Refuse a question that costs more than one question may, by its policy or, of an analyst, by default."""
    for policy in policies:
        told = policy.section.queries.most_epsilon if policy.section.queries is not None else None
        most = told if told is not None else None if analyst is None else _MOST_EPSILON
        if most is not None and policy.name in promises:
            cost = price_of(promises[policy.name])
            if Fraction(cost.epsilon) > most:
                raise Refused(
                    f"this question costs epsilon {float(cost.epsilon):.6g}, and one question about {policy.name} "
                    f"may cost {float(most):g}. Pay less for it, or allow a larger error."
                )


def notes_of(measurements: Sequence[Measurement]) -> tuple[str, ...]:
    """Return what numbers would be of, each once, where that is not the whole table."""
    return tuple(dict.fromkeys(each.question.caps.sentence for each in measurements if each.question.caps.sentence))


def plan_of(measurement: Measured) -> tuple[str, ...]:
    """Return the SQL that reads the rows, one text for each pass over them."""
    return tuple(query.sql(dialect="duckdb", pretty=True) for query in measurement.statistics)
