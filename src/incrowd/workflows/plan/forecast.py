"""Plan: what a release would guarantee and cost, and what would be left; nothing is spent, and no row is read."""

from __future__ import annotations

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
from incrowd.methods.crowds.robust import Degraded, degradation
from incrowd.workflows.plan.expectation import Expectation, expectation
from incrowd.workflows.plan.kept_columns import about_kept_columns
from incrowd.workflows.policy.ledger import declaration_of, find_book, require_look
from incrowd.workflows.policy.policy import Policy, PolicyLike, load_policy
from incrowd.workflows.registry import LEARNING
from incrowd.workflows.release.differences import earlier_releases

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim
    from incrowd.methods.learning.rehearsal import GainBand

_RATES = (Fraction(1, 10), Fraction(1, 2))
_DELTA = Fraction(1, 10**6)


@dataclass(frozen=True)
class Forecast:
    """A guarantee with its price, before anything happened."""

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
        """What will probably come out, from public numbers alone; None where they do not say."""
        return expectation_of(self.policy)

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
        robust = getattr(self.policy.method, "robust", None)
        if robust is None or self.policy.schema.drafted:
            return ()
        found = self.parameters
        return degradation(robust, found["k"], found["delta"], self.policy.schema.unit)

    def _repr_html_(self) -> str:
        expected = [("expect", each.sentence) for each in (self.expectation, self.rehearsed) if each is not None]
        lines = [
            ("dataset", self.policy.name),
            ("protects", str(self.guarantee.unit)),
            ("method", self.policy.method.name),
            ("epsilon", short_up(self.epsilon) if self.epsilon.is_finite() else "infinite"),
            ("delta", short_up(self.delta)),
            ("because", joined(self.guarantee.because)),
            *(("assumes", str(term)) for term in sorted(self.guarantee.assumes)),
            *(() if self.policy.gate is None else (("consent", self.policy.gate.sentence),)),
            *expected,
            *(("note", text) for text in self.warnings),
            ("verdict", "would be released" if self.allowed else f"would be refused: {self.refusal}"),
        ]
        return card("plan: nothing is spent", facts(lines))


def plan(policy: PolicyLike, refusal: str | None = None) -> Forecast:
    """Return what a release under this policy would guarantee, cost and leave.

    All that a release checks before its charge and that needs no row is checked; `refusal` is what the rows say
    (`rehearse`).

    >>> release = {"method": "safe", "k": 20, "rate": 1}
    >>> columns = {"sex": {"categories": ["F", "M"]}}
    >>> plan({"incrowd": 1, "dataset": {"name": "people"}, "columns": columns, "release": release}).allowed
    False
    """
    policy = load_policy(policy)
    guarantee = policy.plan.guarantee
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
        require_look(policy, book)
        earlier_releases(policy, book, anyway=False)
        require_useful(policy)
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
        warnings_of(policy, policy.plan.claims),
    )


def expectation_of(policy: Policy) -> Expectation | None:
    """Return what will probably come out of the declared number of rows, or else of people."""
    return expectation(policy.plan, policy.schema, declared_rows(policy))


def declared_rows(policy: Policy) -> int | None:
    """Return how many rows take part, by the public numbers of the policy; None where it says neither rows nor people.

    Of each person `max_rows` take part, at most, however many rows there are.
    """
    told, unit = policy.section.dataset, policy.schema.unit
    if unit.column is None:
        return told.rows or told.population
    most = None if told.population is None else told.population * unit.max_rows
    return min((number for number in (told.rows, most) if number), default=None)


def rehearsed(policy: Policy) -> GainBand | None:
    """Return how much of what can be learned noise will leave, of the declared number of rows; None where none is."""
    rows = getattr(policy.method, "expected_rows", None) or declared_rows(policy)
    if policy.method.name not in LEARNING or rows is None:
        return None
    from incrowd.methods.learning.rehearsal import rehearse

    return rehearse(policy.method, policy.schema, rows)


def undeclared(policy: Policy) -> str | None:
    """Return which line of the policy would tell more about what will come out, if one is missing."""
    told, unit = policy.section.dataset, policy.schema.unit
    if policy.method.name in LEARNING and declared_rows(policy) is None:
        known = getattr(policy.method, "expected_rows", None)
        return (
            None if known else "not known: add rows: N under dataset:, about how many rows there are; a public number"
        )
    if policy.plan.smallest_class is None:
        return None
    if told.rows is None and told.population is None:
        line = "add rows: N under dataset:, about how many rows there are; a public number"
        more = "" if unit.column is None else "; and population: N, about how many people they are about"
        return f"not known: {line}{more}"
    if unit.column is not None and told.population is None:
        return (
            f"of each person at most {counted(unit.max_rows, 'row')} will take part: where people have more, add "
            "population: N under dataset:, about how many people there are"
        )
    return None


def require_useful(policy: Policy) -> None:
    """Refuse, before anything is charged, a release that will probably be empty by public numbers."""
    expected = expectation_of(policy)
    if expected is not None and expected.likely_empty:
        raise ProbablyEmpty(
            f"{expected.sentence}. Nothing was charged. Choose coarser levels, fewer columns or a smaller k; "
            "or release with --anyway."
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
        cause = drafted_cause(loss) or "this guarantee has no epsilon: a rate below 1, or noise, would give it one."
        return f'{cause} Otherwise its owner must write budget: {{unbounded: "reason"}}.'
    if budget is not None and (spend.epsilon > budget.limit.epsilon or spend.delta > budget.limit.delta):
        return "the budget is smaller than what this release costs: raise the budget or ask for less."
    return None


def warnings_of(policy: Policy, claims: Sequence[Claim]) -> tuple[str, ...]:
    """Return what the owner should think about before, or right after, a release; nothing here comes from rows."""
    found = list(_about_delta(policy.plan.guarantee, policy.section.dataset.population))
    if policy.schema.drafted:
        found.append(
            f"drafted from rows: {', '.join(policy.schema.drafted)}. This voids the guarantee; "
            'where the same is public, write public: "source" there.'
        )
    found += about_kept_columns(policy, claims)
    if policy.budget is None:
        found.append("no budget is declared: this release's cost becomes the whole budget, and a second is refused.")
    return tuple(found)


def _about_delta(guarantee: Guarantee, population: int | None) -> Iterator[str]:
    """Return what to think about a delta; a guarantee of epsilon alone, or without one, has none."""
    if (
        not guarantee.delta
        or not charge_of(guarantee.loss, guarantee.delta, guarantee.unit.adjacency).epsilon.is_finite()
    ):
        return
    if population is None:
        yield "no population is declared: choose delta well below one over the number of people."
    elif guarantee.delta * population >= 1:
        yield (
            f"delta times the declared population is {float(guarantee.delta * population):.3g}: a delta at or above "
            "one over the population allows a mechanism that betrays one person. Choose a smaller delta."
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
