"""Sampled suppression: three of k, rate, ε and δ give the fourth."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeVar

from incrowd.accounting import inverses, people, sampled
from incrowd.accounting.theorem1 import theorem1_delta
from incrowd.core.rounding import Number, exact, float_down
from incrowd.core.unit import Adjacency
from incrowd.errors import Infeasible, InvalidParameter
from incrowd.workflows.bounds.missing import missing_one
from incrowd.workflows.bounds.stated import stated_epsilon

T = TypeVar("T", int, Fraction)

TIGHT = "sampled suppression, tight curve"
REPLACED = "sampled suppression, one row replaced"
_STEP_BACK, _STEPS_BACK = Fraction(3, 4), 24
PERSON = "sampled suppression, tight curve per row, then group privacy"


@dataclass(frozen=True)
class SafeQuestion:
    """Three of the first four, and whom to protect: a row added, removed or replaced, or a person with several rows."""

    k: int | None = None
    rate: Number | None = None
    epsilon: Number | None = None
    delta: Number | None = None
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    rows_per_person: int = 1


@dataclass(frozen=True)
class SafeBound:
    """The promise; δ is what was asked for or what was solved, `delta_tight` the least one at these parameters."""

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
        """Whom the promise protects, in words."""
        if self.rows_per_person > 1:
            return f"one person with at most {self.rows_per_person} rows, added or removed"
        return f"one row, {'replaced' if self.adjacency is Adjacency.REPLACE else 'added or removed'}"

    def to_json(self) -> dict[str, Any]:
        """Return the plain form printed by `--json`."""
        return vars(self) | {"adjacency": str(self.adjacency), "unit": self.unit}


def solve(question: SafeQuestion) -> SafeBound:
    """Find the missing one of k, rate, ε and δ.

    Source: the tight curve (see `incrowd.accounting.sampled_cell`); Li, Qardaji & Su 2010, Theorem 1 for comparison;
    group privacy for people with several rows.

    >>> found = solve(SafeQuestion(k=20, rate="0.1", epsilon="0.5"))
    >>> found.solved, f"{found.delta:.4g}", f"{found.delta_theorem1:.4g}"
    ('delta', '2.632e-11', '1.606e-09')
    >>> solve(SafeQuestion(rate="0.1", epsilon="0.5", delta="1e-6")).k
    10
    """
    solved = missing_one({name: getattr(question, name) for name in ("k", "rate", "epsilon", "delta")})
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
    """Return ln δ at another ε, for whom the question protects."""
    k, rate = _count(question.k), _number(question.rate)
    if question.rows_per_person == 1:
        return sampled.log_delta(k, rate, epsilon, question.adjacency)
    value = people.person_delta(lambda x: sampled.log_delta(k, rate, x), epsilon, question.rows_per_person)
    return math.log(value)


def _described(full: SafeQuestion, solved: str) -> SafeBound:
    epsilon = stated_epsilon(_number(full.epsilon))
    logarithm = log_delta_of(full, epsilon)
    tight = sampled.probability(logarithm)
    if full.rows_per_person == 1:
        tight = sampled.delta(_count(full.k), _number(full.rate), epsilon, full.adjacency)
    asked = tight if full.delta is None else float(exact(full.delta, "delta"))
    plain = full.adjacency is Adjacency.ADD_REMOVE and full.rows_per_person == 1
    return SafeBound(
        k=_count(full.k),
        rate=float(exact(_number(full.rate), "rate")),
        epsilon=float(epsilon),
        delta=asked,
        solved=solved,
        delta_tight=min(tight, asked),  # what was solved keeps what was asked; rounding may say otherwise
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
    rate = _number(question.rate)
    return -_best(lambda pair: -inverses.smallest_k(*pair, rate, question.adjacency), question)


def _largest_rate(question: SafeQuestion) -> Fraction:
    k = _count(question.k)
    return _best(lambda pair: inverses.largest_rate(*pair, k, question.adjacency), question)


def _best(value: Callable[[tuple[Fraction, Fraction]], T], question: SafeQuestion) -> T:
    """Return the largest value over the pairs that are enough, as far as it does not fall."""
    first, *others = _per_row(question)
    best = value(first)
    for pair in others:
        try:
            found = value(pair)
        except Infeasible:
            break
        if found < best:
            break
        best = found
    return best


def _smallest_epsilon(question: SafeQuestion) -> float:
    delta, k, rate = _number(question.delta), _count(question.k), _number(question.rate)
    if question.rows_per_person == 1:
        return inverses.smallest_epsilon(delta, k, rate, question.adjacency)
    return people.smallest_person_epsilon(lambda x: sampled.log_delta(k, rate, x), delta, question.rows_per_person)


def _per_row(question: SafeQuestion) -> list[tuple[Fraction, Fraction]]:
    """Return pairs (ε, δ), each of which is enough for every row so that a person keeps what was asked; δ rounded down.

    A person's promise at a smaller ε holds at the one asked for, too, and can be easier for rows to keep: the failures
    of the steps are weighted less.
    """
    epsilon, delta = stated_epsilon(_number(question.epsilon)), inverses.wanted_delta(_number(question.delta))
    rows = question.rows_per_person
    if rows == 1:
        return [(epsilon, delta)]
    steps = [epsilon / rows * _STEP_BACK**step for step in range(_STEPS_BACK if epsilon else 1)]
    shares = [(step, float_down(delta) / _weight(step, rows)) for step in steps]
    pairs = [(step, Fraction(share)) for step, share in shares if share > 0.0]
    if not pairs:
        raise Infeasible(
            "no row can keep so small a delta for a person: ask for a smaller epsilon, or allow fewer rows."
        )
    return pairs


def _weight(step: Fraction, rows: int) -> float:
    """Return 1 + e^step + … + e^((rows−1)·step), rounded up; infinite where it overflows."""
    most = float(step * (rows - 1))
    if most > 700.0:
        return math.inf
    return math.fsum(math.exp(float(step * row)) for row in range(rows)) * (1.0 + 1e-12)


def _check_people(question: SafeQuestion) -> None:
    if question.rows_per_person < 1:
        raise InvalidParameter("a person has at least one row: rows-per-person must be 1 or more.")
    if question.rows_per_person > 1 and question.adjacency is Adjacency.REPLACE:
        raise InvalidParameter(
            "people with several rows are protected as added or removed here; a replaced person is one removed and one "
            "added. Leave out --replace, and read the result twice: (2ε, (1 + e^ε)δ)."
        )


def _number(value: Number | None) -> Number:
    if value is None:
        raise InvalidParameter("a parameter is missing: give three of k, rate, epsilon and delta.")
    return value


def _count(value: int | None) -> int:
    if value is None:
        raise InvalidParameter("a parameter is missing: give three of k, rate, epsilon and delta.")
    return value
