"""The ledger against a model of it in plain fractions: same answers, same totals, whatever the order of calls."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from incrowd.accounting.budget import Allowance, Budget
from incrowd.accounting.ledger.datasets import Declaration
from incrowd.core.unit import Unit
from incrowd.errors import BudgetExceeded, DoesNotCompose, IncrowdError, InvalidParameter, Refused, SampleReused
from tests.ledgers import anonymous, approximate, create, crowd, pure, sampled_crowd

NAMES = st.sampled_from(["births", "births", "mothers", "deaths"])
ANALYSTS = st.sampled_from([None, "ann", "bob"])
AMOUNTS = st.sampled_from(["0.1", "0.25", "1/3", "0.5", "1e-20"])
BUDGETS = st.sampled_from([None, "plain", "unbounded", "separate"])
OWNER = ("the owner", "for the test")

Pair = tuple[Fraction, Fraction]


def up(text: str) -> Fraction:
    """Round up to 40 decimals, by whole numbers."""
    return Fraction(-(-Fraction(text) * 10**40 // 1), 10**40)


def plus(one: Pair, other: Pair) -> Pair:
    return one[0] + other[0], one[1] + other[1]


def fits(need: Pair, used: Pair, limit: Pair) -> bool:
    return all(n + u <= most or n == 0 for n, u, most in zip(need, used, limit, strict=True))


NONE: Pair = (Fraction(0), Fraction(0))
DELTA = Fraction(1, 10**9)


@dataclass
class Model:
    declared: str | None
    budget: Pair | None
    charges: list[tuple[str | None, Pair]] = field(default_factory=list)
    forms: int = 0
    crowds: int = 0
    samples: set[str] = field(default_factory=set)
    allowances: dict[str, Pair] = field(default_factory=dict)
    closed: bool = False

    def spent(self, who: Callable[[str | None], bool] = lambda _: True) -> Pair:
        total = NONE
        for analyst, pair in self.charges:
            total = plus(total, pair) if who(analyst) else total
        return total

    def used(self, analyst: str | None) -> Pair:
        if self.declared != "separate":
            return self.spent()
        public = self.spent(lambda who: who is None)
        if analyst is not None:
            return plus(public, self.spent(lambda who: who == analyst))
        each = [self.spent(lambda who, one=one: who == one) for one in ("ann", "bob")]  # type: ignore[misc]
        return plus(public, (max(pair[0] for pair in each), max(pair[1] for pair in each)))

    def refusal(self, kind: str, need: Pair, analyst: str | None) -> type[IncrowdError] | None:
        formless = kind in ("form", "crowd")
        allowance = self.allowances.get(analyst or "")
        if self.closed:
            return Refused
        if (kind == "crowd" and self.forms + self.crowds) or (formless and self.crowds):
            return DoesNotCompose
        if kind in self.samples:
            return SampleReused
        if formless:
            return None if self.declared == "unbounded" and allowance is None else BudgetExceeded
        if not fits(need, self.used(analyst), self.budget or need):
            return BudgetExceeded
        own = self.spent(lambda who: who == analyst)
        return BudgetExceeded if allowance is not None and not fits(need, own, allowance) else None


class LedgerMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.ledger = create(f"sqlite:///{Path(self.folder.name)}/ledger.sqlite")
        self.models: dict[str, Model] = {}
        self.root = {"births": "births", "deaths": "deaths"}  # mothers are those who gave birth

    def attempt(self, work: Callable[[], object], expected: type[IncrowdError] | None) -> bool:
        before, outcome = self.ledger.show().head.sequence, None
        try:
            work()
        except IncrowdError as error:
            outcome = error
        assert type(outcome) is (expected or type(None)), outcome
        recorded = outcome is None or isinstance(outcome, Refused)
        assert self.ledger.show().head.sequence <= before + recorded
        return outcome is None

    @initialize(births=BUDGETS, deaths=BUDGETS, mothers=st.booleans())
    def begin(self, births: str | None, deaths: str | None, mothers: bool) -> None:
        self.register("births", births)
        self.register("deaths", deaths)
        if mothers:
            self.register("mothers", None)

    @rule(name=NAMES, kind=BUDGETS)
    def register(self, name: str, kind: str | None) -> None:
        reasons = {"unbounded": "for the test"} if kind == "unbounded" else {}
        reasons |= {"separate_analysts": "for the test"} if kind == "separate" else {}
        budget = None if kind is None else Budget.of(1, "1e-8", **reasons)
        partner = "births" if name == "mothers" else None
        root = partner or name
        known = self.models.get(root)
        expected: type[IncrowdError] | None = None
        if partner is not None and known is None:
            expected = InvalidParameter
        elif known is not None and kind is not None and not self.is_budget(known, kind):
            expected = Refused
        if self.attempt(
            lambda: self.ledger.register(Declaration(name, Unit(), budget, same_people_as=partner)), expected
        ):
            limit = None if kind is None else (Fraction(1), Fraction(1, 10**8))
            self.models.setdefault(root, Model(kind, limit))
            self.root[name] = root

    def is_budget(self, known: Model, kind: str) -> bool:
        same_total = known.budget == (Fraction(1), Fraction(1, 10**8))
        return known.declared == kind or (known.declared is None and kind == "plain" and same_total)

    def known(self, name: str) -> Model | None:
        return self.models.get(self.root.get(name, name))

    @rule(name=NAMES, kind=st.sampled_from(["pure", "approximate"]), analyst=ANALYSTS, epsilon=AMOUNTS)
    def charge_finite(self, name: str, kind: str, analyst: str | None, epsilon: str) -> None:
        self.charge(name, kind, analyst, epsilon)

    @rule(name=NAMES, kind=st.sampled_from(["form", "crowd"]), analyst=ANALYSTS)
    def charge_unbounded(self, name: str, kind: str, analyst: str | None) -> None:
        self.charge(name, kind, analyst, "0")

    @rule(name=NAMES, kind=st.sampled_from(["sample 1", "sample 2"]), analyst=ANALYSTS)
    def charge_sampled(self, name: str, kind: str, analyst: str | None) -> None:
        self.charge(name, kind, analyst, "0")

    def charge(self, name: str, kind: str, analyst: str | None, epsilon: str) -> None:
        guarantees = {
            "form": anonymous(),
            "crowd": crowd(),
            "pure": pure(epsilon),
            "approximate": approximate(epsilon, DELTA),
        }
        guarantee = guarantees.get(kind) or sampled_crowd(kind)
        need = {"pure": (up(epsilon), Fraction(0)), "approximate": (up(epsilon), DELTA)}.get(
            kind, (Fraction(1, 2), DELTA)
        )
        model = self.known(name)
        expected = InvalidParameter if model is None else model.refusal(kind, need, analyst)
        done = self.attempt(lambda: self.ledger.charge(guarantee, name, release="r", analyst=analyst), expected)
        if done and model is not None:
            if kind in ("form", "crowd"):
                model.forms, model.crowds = model.forms + (kind == "form"), model.crowds + (kind == "crowd")
                return
            model.budget = model.budget or need
            model.charges.append((analyst, need))
            model.samples |= {kind} if kind.startswith("sample") else set()

    @rule(name=NAMES, epsilon=AMOUNTS)
    def grant(self, name: str, epsilon: str) -> None:
        model = self.known(name)
        expected = InvalidParameter if model is None else Refused if model.closed else None
        if self.attempt(lambda: self.ledger.grant(name, Budget.of(epsilon), *OWNER), expected) and model is not None:
            down = Fraction(Fraction(epsilon) * 10**40 // 1, 10**40)
            model.budget = plus(model.budget or NONE, (down, Fraction(0)))

    @rule(name=NAMES, analyst=st.sampled_from(["ann", "bob"]), epsilon=st.sampled_from(["0.5", "0.1"]))
    def allow(self, name: str, analyst: str, epsilon: str) -> None:
        model = self.known(name)
        allowance = Allowance.of(analyst, epsilon, "1e-8")
        expected = InvalidParameter if model is None else None
        if self.attempt(lambda: self.ledger.allow(name, allowance, *OWNER), expected) and model is not None:
            model.allowances[analyst] = (Fraction(epsilon), Fraction(1, 10**8))

    @rule(name=st.sampled_from(["deaths"]))
    def close(self, name: str) -> None:
        model = self.known(name)
        expected = InvalidParameter if model is None or model.closed else None
        if self.attempt(lambda: self.ledger.close(name, *OWNER), expected) and model is not None:
            model.closed = True

    @invariant()
    def totals_agree(self) -> None:
        shown = {standing.dataset: standing for standing in self.ledger.show().datasets}
        assert shown.keys() == self.models.keys()
        for root, model in self.models.items():
            totals = shown[root].totals
            assert (Fraction(totals.spent.epsilon), Fraction(totals.spent.delta)) == model.spent()
            assert (totals.unbounded, totals.crowds) == (model.forms + model.crowds, model.crowds)
            limit = shown[root].terms.budget
            assert (limit and (Fraction(limit.limit.epsilon), Fraction(limit.limit.delta))) == model.budget
            assert (shown[root].epsilon == float("inf")) == bool(model.forms + model.crowds)

    def teardown(self) -> None:
        try:
            assert self.ledger.check().ok
        finally:
            self.folder.cleanup()


TestLedgerMachine = pytest.mark.long(LedgerMachine.TestCase)
TestLedgerMachine.settings = settings(
    max_examples=12, stateful_step_count=25, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
