"""Sampled suppression: three of k, rate, ε and δ give the fourth."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from incrowd.accounting import people
from incrowd.accounting.suppression import inverses, tight_delta
from incrowd.accounting.suppression.theorems import theorem1_delta
from incrowd.core.loss import LossRule
from incrowd.core.rounding import Number, exact, probability_up
from incrowd.core.unit import Adjacency
from incrowd.errors import InvalidParameter
from incrowd.workflows.bounds.parameters import missing_one, stated_epsilon

TIGHT = LossRule.SUPPRESSION.text
REPLACED = "sampled suppression, one row replaced"
PERSON = "sampled suppression, tight bound per row, then group privacy"


@dataclass(frozen=True)
class SafeQuestion:
    """Three of the first four, and the unit: a row added, removed or replaced, or a person with several rows."""

    k: int | None = None
    rate: Number | None = None
    epsilon: Number | None = None
    delta: Number | None = None
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    rows_per_person: int = 1


@dataclass(frozen=True)
class SafeBound:
    """The guarantee; δ is the stated or the solved one, `delta_tight` the least one at these parameters."""

    k: int
    rate: float
    epsilon: float
    delta: float
    solved: str
    delta_tight: float
    log10_delta: float
    delta_theorem1: float | None
    adjacency: Adjacency
    rows_per_person: int
    rule: str

    @property
    def unit(self) -> str:
        """The unit of privacy and its adjacency, as text."""
        who = "one row" if self.rows_per_person == 1 else f"one person with at most {self.rows_per_person} rows"
        return f"{who}, {'replaced' if self.adjacency is Adjacency.REPLACE else 'added or removed'}"

    def to_json(self) -> dict[str, Any]:
        """Return the values for `--json`."""
        return vars(self) | {"adjacency": str(self.adjacency), "unit": self.unit}


def solve(question: SafeQuestion) -> SafeBound:
    """Find the missing one of k, rate, ε and δ.

    Source: the tight curve (see `accounting.suppression.sampled_cell`); Li, Qardaji & Su 2010, Theorem 1 to compare;
    group privacy for people with several rows.

    >>> found = solve(SafeQuestion(k=20, rate="0.1", epsilon="0.5"))
    >>> found.solved, f"{found.delta:.4g}", f"{found.delta_theorem1:.4g}"
    ('delta', '2.632e-11', '1.606e-09')
    >>> solve(SafeQuestion(rate="0.1", epsilon="0.5", delta="1e-6")).k
    10
    """
    solved = missing_one({name: vars(question)[name] for name in ("k", "rate", "epsilon", "delta")})
    _check_people(question)
    match solved:
        case "k":
            full = replace(question, k=_smallest_k(question))
        case "rate":
            full = replace(question, rate=_largest_rate(question))
        case "epsilon":
            full = replace(question, epsilon=_smallest_epsilon(question))
        case _:
            full = question
    return _described(full, solved)


def log_delta_of(question: SafeQuestion, epsilon: Number) -> float:
    """Return ln δ at another ε, for the unit of the question."""
    k, rate = _count(question.k), _number(question.rate)
    if question.rows_per_person == 1:
        return tight_delta.log_delta(k, rate, epsilon, question.adjacency)
    value = people.person_delta(lambda x: tight_delta.log_delta(k, rate, x), epsilon, question.rows_per_person)
    return math.log(value)


def _described(full: SafeQuestion, solved: str) -> SafeBound:
    epsilon = stated_epsilon(_number(full.epsilon))
    logarithm = log_delta_of(full, epsilon)
    tight = probability_up(logarithm)
    if full.rows_per_person == 1:
        tight = tight_delta.delta(_count(full.k), _number(full.rate), epsilon, full.adjacency)
    delta = tight if full.delta is None else float(exact(full.delta, "delta"))
    plain = full.adjacency is Adjacency.ADD_REMOVE and full.rows_per_person == 1
    return SafeBound(
        k=_count(full.k),
        rate=float(exact(_number(full.rate), "rate")),
        epsilon=float(epsilon),
        delta=delta,
        solved=solved,
        delta_tight=min(tight, delta),  # the solution meets the stated δ; rounding must not show more
        log10_delta=logarithm / math.log(10.0),
        delta_theorem1=_theorem1(full, epsilon) if plain else None,
        adjacency=full.adjacency,
        rows_per_person=full.rows_per_person,
        rule=TIGHT if plain else PERSON if full.rows_per_person > 1 else REPLACED,
    )


def _theorem1(full: SafeQuestion, epsilon: Fraction) -> float | None:
    try:
        return theorem1_delta(_count(full.k), _number(full.rate), epsilon)
    except InvalidParameter:  # the parameters passed the tight curve, so ε is below the reach of the theorem
        return None


def _smallest_k(question: SafeQuestion) -> int:
    epsilon, delta, rate = map(_number, (question.epsilon, question.delta, question.rate))
    if question.rows_per_person == 1:
        return inverses.smallest_k(epsilon, delta, rate, question.adjacency)
    return people.smallest_k(stated_epsilon(epsilon), delta, rate, question.rows_per_person)


def _largest_rate(question: SafeQuestion) -> Fraction:
    epsilon, delta, k = _number(question.epsilon), _number(question.delta), _count(question.k)
    if question.rows_per_person == 1:
        return inverses.largest_rate(epsilon, delta, k, question.adjacency)
    return people.largest_rate(stated_epsilon(epsilon), delta, k, question.rows_per_person)


def _smallest_epsilon(question: SafeQuestion) -> float:
    delta, k, rate = _number(question.delta), _count(question.k), _number(question.rate)
    if question.rows_per_person == 1:
        return inverses.smallest_epsilon(delta, k, rate, question.adjacency)
    return people.smallest_person_epsilon(lambda x: tight_delta.log_delta(k, rate, x), delta, question.rows_per_person)


def _check_people(question: SafeQuestion) -> None:
    if question.rows_per_person < 1:
        raise InvalidParameter("rows-per-person must be at least 1.")
    if question.rows_per_person > 1 and question.adjacency is Adjacency.REPLACE:
        raise InvalidParameter(
            "people with several rows are added or removed here; replacing a person is one removal and one addition. "
            "Omit --replace, and use the result twice: (2ε, (1 + e^ε)δ)."
        )


def _number(value: Number | None) -> Number:
    if value is None:
        raise InvalidParameter("a parameter is missing: give three of k, rate, epsilon and delta.")
    return value


def _count(value: int | None) -> int:
    return int(_number(value))
