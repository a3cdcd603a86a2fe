"""Query: what was asked, whose rows take part, which groups there are, what is answered; alone or with others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from incrowd.core.claims.claim import GROUPS, assumed, proved
from incrowd.core.claims.privacy import ApproximatePrivacy, Concentrated, PurePrivacy
from incrowd.core.loss import Approximate, Laplace, Loss, Pure, Sampled, Sequence, ZeroConcentrated
from incrowd.core.steps.samples import AMPLIFIED, COINS, SecretSample
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee, inside, steps_of, walk
from incrowd.core.terms import Assumption, Condition, Theorem
from incrowd.core.unit import Unit
from incrowd.core.words import counted
from incrowd.errors import InvalidParameter
from incrowd.queries.query import ContributionBounds
from incrowd.queries.steps.noise import NoisyParts, NoisyStep, parts_of

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim


@dataclass(frozen=True, kw_only=True)
class PureTogether(PurePrivacy):
    """ε-differential privacy of all answers together."""

    questions: int


@dataclass(frozen=True, kw_only=True)
class ApproximateTogether(ApproximatePrivacy):
    """(ε, δ)-differential privacy of all answers together."""

    questions: int


def together(losses: tuple[Loss, ...]) -> Loss:
    """Return the loss of all: ρ adds up, and so do ε and δ of the rest; one alone stays as it is.

    >>> together((Laplace(Fraction(1)), Pure(Fraction(1, 2))))
    Pure(epsilon=Fraction(3, 2))
    >>> together((ZeroConcentrated(Fraction(1)), Approximate(Fraction(0), Fraction(1, 9)))).parts[0]
    ZeroConcentrated(rho=Fraction(1, 1))
    """
    if len(losses) == 1:
        return losses[0]
    concentrated = [loss.rho for loss in losses if isinstance(loss, ZeroConcentrated)]
    stated = [_stated(loss) for loss in losses if not isinstance(loss, ZeroConcentrated)]
    epsilon = sum((cost[0] for cost in stated), Fraction(0))
    delta = sum((cost[1] for cost in stated), Fraction(0))
    plain: Loss = Approximate(epsilon, delta) if delta else Pure(epsilon)
    if not concentrated:
        return plain
    spent = ZeroConcentrated(sum(concentrated, Fraction(0)))
    return Sequence((spent, plain)) if stated else spent


def _stated(loss: Loss) -> tuple[Fraction, Fraction]:
    match loss:
        case Pure(epsilon):
            return epsilon, Fraction(0)
        case Laplace(scale, sensitivity):
            return sensitivity / scale, Fraction(0)
        case Approximate(epsilon, delta):
            return epsilon, delta
    raise InvalidParameter("only losses with an exact epsilon and delta add up to one.")


ROW = Assumption("one-row-one-person", "one row is one person, and nobody has two")
PERSON = Assumption("person-column-of-question", "the person ID column identifies people: nobody has two IDs")
LEDGER = Assumption("one-ledger-for-questions", "all releases about these people go through one ledger")
BEFORE = Assumption(
    "terms-chosen-without-rows",
    "bounds, categories and the terms of the query were chosen without looking at the rows",
)
TOGETHER = Theorem(
    "questions-fixed-before", "the queries were all fixed before the first answer, so their losses compose"
)
CONFIDENCE = "0.95"
_HELD = (
    "an interval, where there is one, holds the truth in 95 of 100 answers, before noisy numbers choose which rows are "
    "shown"
)
_PROVED = proved(
    Condition(
        "answers-from-noisy",
        "of what depends on rows, nothing enters the answer but sums under the stated noise, what"
        " the stated private selections chose, and names of groups whose noisy count reaches the "
        "stated threshold",
    ),
    Condition(
        "contributions-bounded",
        "one unit of privacy moves the statistics by the stated widths and rows at most, whatever the rows hold",
    ),
)


@dataclass(frozen=True)
class Understand(Step):
    """A query was understood: its text in a normal form, the tables that it reads, and what is paid for it."""

    kind: ClassVar[str] = "understand"
    title: ClassVar[str] = "The query"

    question: str
    tables: tuple[str, ...]
    terms: Mapping[str, str] | None = None

    @property
    def sentence(self) -> str:
        return self.question

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Let a sample stand in front of one table only."""
        if isinstance(inner.loss, Sampled) and len(self.tables) != 1:
            raise InvalidParameter("a secret sample is drawn of one table, and these steps name another number.")
        return super().around(inner, unit)


@dataclass(frozen=True)
class RowSample(SecretSample):
    """Each row of the one table is sampled independently, in secret."""

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Put the sample around noise that is pure, where each row is a unit of its own."""
        if unit != Unit() or not isinstance(inner.loss, Pure | Laplace):
            raise InvalidParameter("a sample goes with pure noise, and with rows that are units of their own.")
        return replace(
            inner,
            loss=Sampled(self.rate, inner.loss),
            because=(*inner.because, AMPLIFIED),
            assumes=inner.assumes | {COINS},
        )


@dataclass(frozen=True)
class BoundContribution(Step):
    """One unit of privacy takes part with few rows, in few groups, whatever the table holds."""

    kind: ClassVar[str] = "bound what one unit contributes"
    title: ClassVar[str] = "Few rows each"

    rows: int
    groups: int
    max_rows: Mapping[str, int] | None = None
    max_groups: int | None = None

    @property
    def caps(self) -> ContributionBounds:
        """How much of each person is left in the tables that numbers are of."""
        return ContributionBounds(self.max_rows or {}, self.max_groups)

    @property
    def sentence(self) -> str:
        rows, groups = counted(self.rows, "row"), counted(self.groups, "group")
        reach = f"One unit of privacy takes part with {rows} in {groups} at most, whatever the table holds."
        return f"{reach} {self.caps.sentence}".strip()

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Make a loss of noise, threshold and picks, now that it is known how far one unit reaches."""
        parts = parts_of(inner)
        if min(self.rows, self.groups) < 1:
            raise InvalidParameter("a unit takes part with at least one row, in at least one group.")
        if parts.sums is not None and parts.sums.rows != (self.groups if parts.sums.people else self.rows):
            raise InvalidParameter("the sums are moved by another number of rows than a unit has.")
        losses = parts.losses(self.rows, unit)
        if not losses:
            return StepGuarantee()
        person = PERSON if unit.kind.of_people else ROW
        return StepGuarantee(together(losses), parts.reasons(unit), frozenset({person, LEDGER, BEFORE}))


@dataclass(frozen=True)
class GroupRows(Step):
    """All groups that the declarations allow are answered."""

    kind: ClassVar[str] = "group"
    title: ClassVar[str] = "Group"

    by: tuple[str, ...]
    groups: int

    def __post_init__(self) -> None:
        if not self.by:
            raise InvalidParameter("rows are grouped by at least one column.")

    @property
    def sentence(self) -> str:
        return f"All {self.groups:,} groups that the declarations allow are answered, empty ones too."


@dataclass(frozen=True)
class ListedGroups(Step):
    """The groups that a public table has are answered."""

    kind: ClassVar[str] = "group"
    title: ClassVar[str] = "Group"

    by: tuple[str, ...]
    groups: int
    listed_in: str

    def __post_init__(self) -> None:
        if not self.by:
            raise InvalidParameter("rows are grouped by at least one column.")

    @property
    def sentence(self) -> str:
        groups = f"Of {counted(self.groups, 'group')} that the declarations allow"
        return f"{groups}, those that the public table {self.listed_in} has are answered, empty ones too."


@dataclass(frozen=True)
class OneGroup(Step):
    """All rows together are one group."""

    kind: ClassVar[str] = "group"
    title: ClassVar[str] = "No groups"

    by: ClassVar[tuple[str, ...]] = ()
    groups: ClassVar[int] = 1

    @property
    def sentence(self) -> str:
        return "All rows together are one group."


@dataclass(frozen=True)
class OpenGroups(NoisyStep):
    """The groups are those that occur; a threshold decides which of them are shown."""

    kind: ClassVar[str] = "group"
    title: ClassVar[str] = "Group"

    by: tuple[str, ...]

    groups: ClassVar[str] = "not known before rows are read"

    @property
    def sentence(self) -> str:
        return "The groups are those that occur; which of them are shown is decided after the noise."

    def added_to(self, parts: NoisyParts) -> NoisyParts:
        return replace(parts, open_groups=True)


@dataclass(frozen=True)
class GiveAnswer(NoisyStep):
    """The answer is computed from the noisy numbers alone."""

    kind: ClassVar[str] = "answer"
    title: ClassVar[str] = "Answer"

    columns: tuple[str, ...]

    confidence: ClassVar[str] = CONFIDENCE

    @property
    def sentence(self) -> str:
        return f"From the noisy numbers alone: {', '.join(self.columns)}; {_HELD}."

    def added_to(self, parts: NoisyParts) -> NoisyParts:
        """Begin: nothing of the rows is in an answer but what noise and picks let through."""
        return parts

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim the differential privacy of the answer, in the form in which it was paid."""
        shared = _shared(basis)
        rho, delta = _rho(basis.guarantee.loss), basis.guarantee.delta
        if rho is not None and not delta:
            return (Concentrated(rho=rho, **shared),)
        if delta:
            return (ApproximatePrivacy(epsilon=basis.epsilon, delta=delta, rho=rho, **shared),)
        return (PurePrivacy(epsilon=basis.epsilon, **shared),)


@dataclass(frozen=True)
class QueryBatch(Step):
    """Several queries that were fixed before the first answer and are paid for as one."""

    kind: ClassVar[str] = "questions"
    title: ClassVar[str] = "Several queries"

    questions: tuple[tuple[Step, ...], ...]

    @property
    def sentence(self) -> str:
        return f"{counted(self.number, 'query')} were planned together, and are paid for as one."

    @property
    def number(self) -> int:
        """How many queries are answered: some may be answered together, by one of the steps."""
        return sum(isinstance(step, GiveAnswer) for step in walk(self.held))

    @property
    def tables(self) -> int:
        """In how many files the answers leave, where they do."""
        return self.number

    @property
    def held(self) -> tuple[Step, ...]:
        return tuple(step for steps in self.questions for step in steps)

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Compose what each query guarantees."""
        if inner.loss is not None or not self.questions:
            raise InvalidParameter("queries that are paid for as one stand alone, and are at least one.")
        guarantees = [inside(steps, unit) for steps in self.questions]
        losses = tuple(part.loss for part in guarantees if part.loss is not None)
        if len(losses) < len(guarantees):
            raise InvalidParameter("some query answers nothing.")
        reasons = dict.fromkeys(theorem for part in guarantees for theorem in part.because)
        return StepGuarantee(
            losses[0] if len(losses) == 1 else Sequence(losses),
            (*reasons, TOGETHER),
            frozenset().union(*(part.assumes for part in guarantees)),
        )

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim what all answers guarantee together."""
        shared: dict[str, Any] = {**_shared(basis), "epsilon": basis.epsilon, "questions": self.number}
        delta = basis.guarantee.delta
        return (ApproximateTogether(delta=delta, **shared) if delta else PureTogether(**shared),)

    def to_json(self) -> dict[str, Any]:
        return {"step": self.kind, "questions": [[step.to_json() for step in steps] for steps in self.questions]}

    @classmethod
    def read(cls, plain: Mapping[str, Any], classes: Iterable[type[Step]]) -> QueryBatch | None:
        if set(plain) != {"step", "questions"} or not isinstance(plain["questions"], list):
            return None
        step_classes = tuple(classes)
        return cls(tuple(steps_of(steps, step_classes) for steps in plain["questions"]))


@dataclass(frozen=True)
class Combine(Step):
    """One answer is made of those to several queries, from these answers alone."""

    kind: ClassVar[str] = "combine"
    title: ClassVar[str] = "One answer of several"

    question: str
    columns: tuple[str, ...]

    confidence: ClassVar[str] = CONFIDENCE

    @property
    def sentence(self) -> str:
        return f"From these answers alone, as {self.question} asks: {', '.join(self.columns)}; {_HELD}."


def _shared(basis: ClaimBasis) -> dict[str, Any]:
    unit, guarantee = basis.unit, basis.guarantee
    return {
        "adjacency": unit.adjacency,
        "max_rows": unit.max_rows,
        "unit": unit,
        "theorem": guarantee.because,
        "preconditions": (*_PROVED, *assumed(guarantee.assumes)),
        "not_protected": (GROUPS,),
    }


def _rho(loss: Loss) -> Any:
    """Return the ρ of a loss that was paid in it, or None."""
    first = loss.parts[0] if isinstance(loss, Sequence) and loss.parts else loss
    return first.rho if isinstance(first, ZeroConcentrated) else None
