"""Step: one thing that happens to rows, as a typed value from which guarantee, claims and words are computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar, TypeVar

from incrowd.core.claims.claim import Claim
from incrowd.core.codec import encode, pick
from incrowd.core.guarantee import Guarantee
from incrowd.core.loss import Loss, Syntactic
from incrowd.core.terms import Assumption, Exposure, Theorem
from incrowd.core.unit import ExtraRowsRule, Kind, Unit
from incrowd.errors import InvalidParameter

BLIND = Assumption("chosen-without-rows", "recoding, levels and parameters were chosen without access to the rows")
ONCE = Assumption("not-chosen-among-runs", "this release was not selected from several runs")
LEDGER = Assumption("one-ledger", "all releases about these people are charged to this ledger")
ROW_IS_PERSON = Assumption("one-row-each", "each person has at most one row")
PERSON_COLUMN = Assumption("person-column", "the person ID column identifies people, and nobody has two IDs")
EDGE_IS_HIDDEN = Assumption(
    "edge-is-secret",
    "the edges must stay secret; nodes and their columns may be public",
)
RELATION_IS_HIDDEN = Assumption(
    "relation-is-secret",
    "each edge of one kind must stay secret; other edges of the same two nodes, nodes and their columns may be public",
)
NODE_IS_PERSON = Assumption("one-node-each", "each person is one node, and nobody has two IDs")
PASSED = Exposure(
    "check-passed",
    "that nobody has more rows than allowed: the source was checked, and publication shows that the check passed",
)

SomeStep = TypeVar("SomeStep", bound="Step")


@dataclass(frozen=True)
class StepGuarantee:
    """A guarantee that grows from the last step outwards: its loss (None: nothing released yet), reasons, assumptions.

    `on_sample` are the reasons that take the place of all others if the same is computed on a secret sample.
    """

    loss: Loss | None = None
    because: tuple[Theorem, ...] = ()
    assumes: frozenset[Assumption] = frozenset()
    on_sample: tuple[Theorem, ...] = ()

    @property
    def syntactic(self) -> bool:
        """Whether it is about the form of a table only."""
        return isinstance(self.loss, Syntactic)


@dataclass(frozen=True)
class ClaimBasis:
    """What claims are computed from: the folded guarantee, the steps, and the numbers that an accountant computed."""

    guarantee: Guarantee
    steps: tuple[Step, ...]
    numbers: Mapping[str, Any] = field(default_factory=dict)

    @property
    def unit(self) -> Unit:
        """The unit of privacy."""
        return self.guarantee.unit

    @property
    def epsilon(self) -> Decimal:
        """The ε that is charged."""
        return Decimal(self.numbers["epsilon"])

    def find(self, kind: type[SomeStep]) -> SomeStep | None:
        """Return the first step of a class, also one inside another step; None if there is none."""
        return next((step for step in walk(self.steps) if isinstance(step, kind)), None)

    def need(self, kind: type[SomeStep]) -> SomeStep:
        """Return the first step of a class, or refuse steps that lack it."""
        step = self.find(kind)
        if step is None:
            raise InvalidParameter(f"these steps lack one of kind {kind.kind!r}.")
        return step


class Step:
    """What every step has.  Subclasses are frozen dataclasses; their fields say all that a claim can depend on.

    `kind` is the step's name in certificates, `glyph` names the small picture of what happens.
    """

    kind: ClassVar[str]
    title: ClassVar[str]
    glyph: ClassVar[str | None] = None
    whole_series: ClassVar[bool] = False
    """Whether what it guarantees is guaranteed for all releases of a series together."""

    @property
    def prices_withdrawals(self) -> bool:
        """Whether it covers people who withdraw after they were counted: a single release reads none of them."""
        return not self.whole_series

    @property
    def open_columns(self) -> tuple[str, ...]:
        """The columns whose labels it makes itself: open at the ends, also where the values are numbers."""
        return ()

    @property
    def sentence(self) -> str:
        """What happens, in words."""
        raise NotImplementedError

    @property
    def held(self) -> tuple[Step, ...]:
        """The steps inside this one."""
        return ()

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Return the guarantee of this step and all that follow, given that of those that follow."""
        return inner

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Return the claims that this step makes."""
        return ()

    def amend(self, claim: Claim) -> Claim:
        """Return a claim of the whole release as this step leaves it."""
        return claim

    def to_json(self) -> dict[str, Any]:
        """Return the plain form: the step's name and its fields."""
        fields: dict[str, Any] = encode(self)
        return {"step": self.kind, **fields}

    @classmethod
    def read(cls, plain: Mapping[str, Any], classes: Iterable[type[Step]]) -> Step | None:  # noqa: ARG003 - for nested steps
        """Read what `to_json` wrote, or return None; `classes` are those of steps that it may hold."""
        return pick([cls], dict(plain), lambda step: step.to_json())


def step_of(plain: Mapping[str, Any], classes: Iterable[type[Step]]) -> Step:
    """Read a step of one of the classes, or refuse it: unknown fields and unknown steps are refused."""
    allowed = tuple(classes)
    readings = (cls.read(plain, allowed) for cls in allowed if cls.kind == plain.get("step"))
    step = next((step for step in readings if step is not None), None)
    if step is None:
        raise InvalidParameter("a step has an unknown kind, or a field that its kind does not have.")
    return step


def steps_of(plain: Any, classes: Iterable[type[Step]]) -> tuple[Step, ...]:
    """Read the steps inside a step, or refuse them."""
    if not isinstance(plain, list) or not all(isinstance(item, Mapping) for item in plain):
        raise InvalidParameter("a step may contain only steps.")
    allowed = tuple(classes)
    return tuple(step_of(item, allowed) for item in plain)


def walk(steps: Iterable[Step]) -> Iterable[Step]:
    """Yield every step and those that it holds."""
    for step in steps:
        yield step
        yield from walk(step.held)


def fold(steps: tuple[Step, ...], unit: Unit, delta: Fraction = Fraction(0)) -> Guarantee:
    """Return the guarantee of steps for a unit, from the last step outwards, charged at δ.

    >>> from incrowd.core.steps.suppression import Suppress
    >>> fold((Suppress(5),), Unit()).loss
    Crowd(k=5, epsilon=Fraction(0, 1))
    """
    inner = inside(steps, unit)
    if inner.loss is None:
        raise InvalidParameter(
            "these steps release nothing, so there is nothing to guarantee: add a step that releases."
        )
    return Guarantee(inner.loss, unit, inner.because, inner.assumes, Fraction(0) if inner.syntactic else delta)


def inside(steps: tuple[Step, ...], unit: Unit) -> StepGuarantee:
    """Return the folded guarantee of some steps, as a step that holds them needs it."""
    inner = StepGuarantee()
    for step in reversed(steps):
        inner = step.around(inner, unit)
    return inner


def claims_of(basis: ClaimBasis) -> tuple[Claim, ...]:
    """Return all claims of a guarantee, the strongest first; each names what a check of the source shows."""
    made = sorted((claim for step in basis.steps for claim in step.claims(basis)), key=lambda claim: claim.rank)
    for step in basis.steps:
        made = [step.amend(claim) for claim in made]
    if basis.unit.more is not ExtraRowsRule.REFUSE:
        return tuple(made)
    return tuple(replace(claim, not_protected=(*claim.not_protected, PASSED)) for claim in made)


def assumptions(unit: Unit) -> frozenset[Assumption]:
    """Return the assumptions of every guarantee for a unit."""
    return frozenset({BLIND, ONCE, LEDGER, unit_assumption(unit)})


def unit_assumption(unit: Unit) -> Assumption:
    """Return what must be true for the unit to be the entity that needs protection."""
    return _UNIT_ASSUMPTIONS[unit.kind]


_UNIT_ASSUMPTIONS = {
    Kind.ROW: ROW_IS_PERSON,
    Kind.PERSON: PERSON_COLUMN,
    Kind.PERSON_PERIOD: PERSON_COLUMN,
    Kind.EDGE: EDGE_IS_HIDDEN,
    Kind.RELATION: RELATION_IS_HIDDEN,
    Kind.NODE: NODE_IS_PERSON,
}
