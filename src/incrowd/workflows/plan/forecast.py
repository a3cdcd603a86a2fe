"""Forecast: guarantee, cost and remaining budget of a release; nothing is spent, and no row is read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from incrowd.accounting.accountant import Spend, charge_of
from incrowd.accounting.budget import Budget
from incrowd.accounting.ledger.ledger import Ledger
from incrowd.accounting.ledger.status import BudgetStatus
from incrowd.core.guarantee import Guarantee
from incrowd.core.loss import Crowd, Loss, Sampled, Syntactic
from incrowd.core.steps.rows import drafted_cause
from incrowd.core.terms import joined
from incrowd.core.unit import Unit
from incrowd.core.words import counted, short_up
from incrowd.drawing.card import card, facts
from incrowd.errors import ProbablyEmpty, Refused
from incrowd.methods.shared.robust import Degraded, degradation
from incrowd.workflows.plan.expectation import Expectation, expectation
from incrowd.workflows.plan.outside import require_outside_rules
from incrowd.workflows.plan.published import PublishedColumn, published_by
from incrowd.workflows.plan.warnings import about_kept_columns
from incrowd.workflows.policy.ledger import declaration_of, find_book, require_look
from incrowd.workflows.policy.policy import Policy, PolicyLike, load_policy
from incrowd.workflows.registry import LEARNING
from incrowd.workflows.release.differences import earlier_releases

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim
    from incrowd.methods.learning.shared.rehearsal import GainBand

_RATES = (Fraction(1, 10), Fraction(1, 2))
_DELTA = Fraction(1, 10**6)


@dataclass(frozen=True, repr=False)
class Forecast:
    """A guarantee with its cost, before anything happens."""

    policy: Policy
    guarantee: Guarantee
    epsilon: Decimal
    delta: Decimal
    rule: str
    standing: BudgetStatus | None
    allowed: bool
    refusal: str | None
    warnings: tuple[str, ...]

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The method's parameters, the solved one included."""
        return self.policy.plan.settings

    @property
    def expectation(self) -> Expectation | None:
        """The expected output, from public numbers alone; None where they do not tell it."""
        return expectation_of(self.policy)

    @property
    def published(self) -> tuple[PublishedColumn, ...]:
        """Each column as it will be published, with labels made from the schema."""
        return published_by(self.policy)

    @cached_property
    def rehearsed(self) -> GainBand | None:
        """How much of what can be learned noise will probably leave, on made-up rows; None where nothing is learned."""
        return rehearsed(self.policy)

    @property
    def nearest(self) -> tuple[Nearest, ...]:
        """What a secret sample in front would guarantee; empty where this guarantee has an epsilon."""
        made, population = self.policy.plan, self.policy.section.dataset.population
        return nearest_safe(made.guarantee.loss, made.smallest_class, made.unit, population)

    @property
    def biased(self) -> tuple[Degraded, ...]:
        """How the guarantee would degrade if the rows were a more biased sample; empty where they are not one."""
        robust = self.policy.method.robust
        if robust is None or self.policy.schema.drafted:
            return ()
        solved = self.parameters
        return degradation(robust, solved["k"], solved["delta"], self.policy.schema.unit)

    def __repr__(self) -> str:
        width = max(len(name) for name, _ in self._lines)
        return "\n".join(["Plan (nothing spent)", *(f"  {name:{width}}  {text}" for name, text in self._lines)])

    def _repr_html_(self) -> str:
        return card("Plan (nothing spent)", facts(self._lines))

    @property
    def _lines(self) -> list[tuple[str, str]]:
        expected = [("expect", output.sentence) for output in (self.expectation, self.rehearsed) if output is not None]
        return [
            ("dataset", self.policy.name),
            ("protects", str(self.guarantee.unit)),
            ("method", self.policy.method.name),
            ("epsilon", short_up(self.epsilon) if self.epsilon.is_finite() else "no bound"),
            ("delta", short_up(self.delta)),
            ("because", joined(self.guarantee.because)),
            *(("assumes", str(term)) for term in sorted(self.guarantee.assumes)),
            *(() if self.policy.gate is None else (("consent", self.policy.gate.sentence),)),
            *expected,
            *(("note", text) for text in self.warnings),
            ("verdict", "would be released" if self.allowed else f"would be refused: {self.refusal}"),
        ]


def plan(policy: PolicyLike, refusal: str | None = None) -> Forecast:
    """Return what a release under this policy would guarantee, cost and leave.

    All that a release checks before its charge and that needs no row is checked; `refusal` is what the rows say
    (`rehearse`).

    >>> release = {"method": "safe", "k": 20, "rate": 1}
    >>> columns = {"sex": {"categories": ["F", "M"]}}
    >>> plan({"incrowd": 1, "dataset": {"name": "people"}, "columns": columns, "release": release}).allowed
    False
    """
    from incrowd.workflows.release.recover import hidden_releases

    policy = load_policy(policy)
    guarantee = policy.plan.guarantee
    hidden: tuple[str, ...] = ()
    spend = charge_of(guarantee.loss, guarantee.delta, guarantee.unit.adjacency)
    standing = None
    try:
        payer = payer_of(policy)
        if payer is None:
            refusal = refusal or _first(policy.budget, guarantee.loss, spend)
        else:
            ledger, dataset = payer
            standing = ledger.standing(dataset)
            ledger.preview({dataset: guarantee})
        book = find_book(policy)
        hidden = tuple(release.sentence for release in hidden_releases(policy, book))
        require_look(policy, book)
        earlier_releases(policy, book, anyway=False)
        require_useful(policy)
        require_outside_rules(policy)
    except Refused as error:
        refusal = refusal or str(error)
    return Forecast(
        policy,
        guarantee,
        spend.epsilon,
        spend.delta,
        joined(spend.rule),
        standing,
        refusal is None,
        refusal,
        (*warnings_of(policy, policy.plan.claims), *hidden),
    )


def expectation_of(policy: Policy) -> Expectation | None:
    """Return the expected output for the declared number of rows, or else of people."""
    return expectation(policy.plan, policy.schema, declared_rows(policy))


def declared_rows(policy: Policy) -> int | None:
    """Return how many rows take part, by the public numbers of the policy; None where it says neither rows nor people.

    Of each person `max_rows` take part, at most, however many rows there are.  Where there are periods, a release reads
    one of them: the rows of the table are spread evenly over them.
    """
    dataset, unit = policy.section.dataset, policy.schema.unit
    if unit.column is None:
        return dataset.rows or dataset.population
    most = None if dataset.population is None else dataset.population * unit.max_rows
    releases = 1 if policy.calendar is None else policy.calendar.size
    rows = None if dataset.rows is None else math.ceil(dataset.rows / releases)
    return min((number for number in (rows, most) if number), default=None)


def rehearsed(policy: Policy) -> GainBand | None:
    """Return how much of what can be learned noise will leave, of the declared number of rows; None where none is."""
    rows = policy.method.expected_rows or declared_rows(policy)
    if policy.method.name not in LEARNING or rows is None:
        return None
    from incrowd.methods.learning.shared.rehearsal import rehearse

    return rehearse(policy.method, policy.schema, rows)


def undeclared(policy: Policy) -> str | None:
    """Return which line of the policy would tell more about what will come out, if one is missing."""
    dataset, unit = policy.section.dataset, policy.schema.unit
    if policy.method.name in LEARNING and declared_rows(policy) is None:
        expected_rows = policy.method.expected_rows
        return None if expected_rows else "unknown: add rows: N under dataset:, an approximate public number of rows"
    if policy.plan.smallest_class is None:
        return None
    if dataset.rows is None and dataset.population is None:
        more = "" if unit.column is None else "; and population: N, an approximate number of people"
        return f"unknown: add rows: N under dataset:, an approximate public number of rows{more}"
    if unit.column is not None and dataset.population is None:
        return (
            f"at most {counted(unit.max_rows, 'row')} per person will be used: if people have more, add population: "
            "N under dataset:, an approximate number of people"
        )
    return None


def require_useful(policy: Policy) -> None:
    """Refuse, before anything is charged, a release that will probably be empty by public numbers."""
    expected = expectation_of(policy)
    if expected is not None and expected.likely_empty:
        raise ProbablyEmpty(
            f"{expected.sentence}. Nothing was charged. Choose coarser levels, fewer columns or a smaller k, or "
            "release with --force."
        )


def payer_of(policy: Policy) -> tuple[Ledger, str] | None:
    """Return the ledger and the dataset whose budget would pay, if they exist; refuse what registering would refuse."""
    ledger = find_book(policy)
    if ledger is None:
        return None
    ledger.standing(declaration_of(policy))
    payer = policy.name if ledger.knows(policy.name) else policy.section.dataset.same_people_as
    return None if payer is None else (ledger, payer)


def _first(budget: Budget | None, loss: Loss, spend: Spend) -> str | None:
    """Say why a first release would be refused, if it would: no budget means that it is its own."""
    if not spend.epsilon.is_finite():
        if budget is not None and budget.unbounded:
            return None
        cause = drafted_cause(loss) or "this guarantee has no epsilon. A rate below 1, or noise, would give it one."
        return f'{cause} Otherwise the budget owner must write budget: {{unbounded: "reason"}}.'
    if budget is not None and (spend.epsilon > budget.limit.epsilon or spend.delta > budget.limit.delta):
        return "this release costs more than the budget: raise the budget, or lower epsilon and delta."
    return None


def warnings_of(policy: Policy, claims: Sequence[Claim]) -> tuple[str, ...]:
    """Return what the owner should think about before, or right after, a release; nothing here comes from rows."""
    warnings = list(_about_delta(policy.plan.guarantee, policy.section.dataset.population))
    if policy.schema.drafted:
        warnings.append(
            f"data-dependent: {', '.join(policy.schema.drafted)}. This voids the guarantee. "
            'If the values are public, write public: "source" there.'
        )
    warnings += about_kept_columns(policy, claims)
    if policy.budget is None:
        warnings.append(
            "no budget is declared: the cost of this release becomes the whole budget, and a second release is refused."
        )
    return tuple(warnings)


def _about_delta(guarantee: Guarantee, population: int | None) -> Iterator[str]:
    """Return what to think about a delta; a guarantee of epsilon alone, or without one, has none."""
    if (
        not guarantee.delta
        or not charge_of(guarantee.loss, guarantee.delta, guarantee.unit.adjacency).epsilon.is_finite()
    ):
        return
    if population is None:
        yield "no population is declared: choose delta far below one over the number of people."
    elif guarantee.delta * population >= 1:
        yield (
            f"delta times the declared population is {float(guarantee.delta * population):.3g}: a delta at or above "
            "one over the population allows a mechanism that publishes one person's data. Choose a smaller delta."
        )


@dataclass(frozen=True)
class Nearest:
    """Sampled suppression below the same k, or below a larger one: what it costs."""

    k: int
    rate: Fraction
    epsilon: Decimal
    delta: Fraction


def nearest_safe(loss: Loss, k: int | None, unit: Unit, population: int | None) -> tuple[Nearest, ...]:
    """Return what sampled suppression would guarantee for a release that guarantees a form, or crowds, and no epsilon.

    The k is the stated one, or the least twice, four times … as large that reaches an epsilon of at most 2 at a delta
    of one in a million, or a tenth of one over the population.  Every released column then belongs to the class.

    >>> [(each.k, str(each.rate)) for each in nearest_safe(Syntactic("k-anonymity"), 5, Unit(), None)]
    [(10, '1/10'), (40, '1/2')]
    """
    if k is None or unit.max_rows > 1 or not isinstance(loss, Crowd | Syntactic):
        return ()
    delta = _DELTA if population is None else min(_DELTA, Fraction(1, 10 * max(1, population)))
    return tuple(_least(max(2, k), rate, delta, unit) for rate in _RATES)


def _least(k: int, rate: Fraction, delta: Fraction, unit: Unit) -> Nearest:
    while True:
        epsilon = charge_of(Sampled(rate, Crowd(k)), delta, unit.adjacency).epsilon
        if epsilon.is_finite() and epsilon <= 2:
            return Nearest(k, rate, epsilon, delta)
        k *= 2
