"""Steps: values of rows are masked; what that keeps of a table is claimed, what it hides is measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.claims.claim import Claim, proved
from incrowd.core.displacement import Displacement
from incrowd.core.loss import Syntactic
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee
from incrowd.core.terms import Condition, Exposure, Theorem
from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from incrowd.core.unit import Unit

CRITERION = "perturbation"
BECAUSE = Theorem("masked", "values are masked: how well that hides people is measured, not guaranteed")
UNMASKED = Exposure("unmasked-columns", "columns that were not changed: they show what they showed")
MEASURED = Exposure(
    "masked-anything",
    "anything: a masked value may be near the true one, and rows may be told apart; `assess` and `attack` measure it",
)
SUBGROUPS = Exposure(
    "parts-of-the-table", "parts of the table: what is kept of all rows need not be kept of some of them"
)
BESIDE = "reads beside the released columns"
"""What a step that follows reads of the original besides what is released, as a guarantee of form lists it."""
_MADE = Condition("made-so", "the program makes it so, whatever the rows are")


_MASKING_NONE = Theorem("masking-none", "none: what masking hides depends on the rows and on what others know")


class KeptStatistic(StrEnum):
    """What of a table a mask can keep."""

    VALUES = "every value of each column occurs as often as before"
    MEANS = "the mean of each column"
    WEIGHTED_MEANS = "the mean of each column, by the survey weights"
    TOTALS = "the sum of the survey weights"
    SHOWN = "every value that is shown"
    MOMENTS = "the mean of each column and all variances and covariances among them"
    COVARIANCES = "all covariances among different columns"
    CORRELATIONS = "all correlations among the columns"
    RANKS = "the rank of each value, within the stated share of the rows"
    TABLES = "every table that leaves the area out"
    FREQUENCIES = "how often each value occurs"
    RANK_CORRELATIONS = (
        "rank correlations, among the columns and with those that the model is given, as far as the normal model of "
        "their scores is right"
    )
    INSIDE = "every value that lies between the bounds"
    NEARNESS = "each value, within one base of the rounding"


class Exactness(StrEnum):
    """How far something is kept."""

    EXACT = "exactly"
    ROUNDED = "up to the rounding of numbers"
    MEAN = "on average over the coins"
    LIMIT = "ever better with more rows"
    ESTIMATED = "by an unbiased estimate from what is published"
    NEARLY = "but for the stated share of it"


@dataclass(frozen=True, kw_only=True)
class Preservation(Claim):
    """What is kept of the rows as they were read: limited per person, recoded, without those that are left out.

    It is kept in each group of rows alike in the columns `within`, where some are named, and of `households`, each
    counted once, where that is said.
    """

    kind = "preserved statistics"
    rank: ClassVar[int] = 60

    columns: tuple[str, ...]
    kept: KeptStatistic
    how: Exactness
    share: Fraction | None = None
    within: tuple[str, ...] | None = None
    households: bool | None = None

    def __post_init__(self) -> None:
        if self.within == () or self.households is False:
            raise InvalidParameter(
                "groups are alike in one column at least, and what is not of households says so not."
            )

    @property
    def sentence(self) -> str:
        """What is claimed, for people."""
        who = "households as they were read, each counted once" if self.households else "rows as they were read"
        alike = "" if self.within is None else f", in each group of rows alike in {some(self.within)}"
        return f"Kept of the {who}, {self.how}{alike}: {self.kept}."


@dataclass(frozen=True, kw_only=True)
class Masked(Claim):
    """Values were changed, and nothing is said about how well that hides anyone."""

    kind = "masked values"
    sentence = (
        "Values in the named columns went through the steps below, which may have changed them; how well that hides "
        "people is measured."
    )
    rank: ClassVar[int] = 70

    columns: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Masking(Step):
    """Values of some columns are changed.

    `within`: in each group of rows alike in these columns by itself; `household`: once for each household that this
    column tells apart, whose rows share the values.
    """

    glyph: ClassVar[str | None] = "coarser"
    leaves_out: ClassVar[bool] = False
    """Whether rows may be left out."""
    source: ClassVar[Theorem]
    """The theorem or method by which the statistics are kept."""

    within: tuple[str, ...] = ()
    household: str | None = None

    @property
    def changes(self) -> tuple[str, ...]:
        """The columns whose values are changed."""
        raise NotImplementedError

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns that are read beside those that are changed."""
        return self.within

    @property
    def beside(self) -> tuple[str, ...]:
        """What is read that is never released."""
        return () if self.household is None else (self.household,)

    @property
    def displaced(self) -> Mapping[str, Displacement]:
        """The columns whose values are moved, and how far: what an attacker knows who reads the steps."""
        return {name: Displacement() for name in self.changes if name not in self.emptied}

    @property
    def emptied(self) -> tuple[str, ...]:
        """The columns of which cells may be left empty."""
        return ()

    @property
    def record_wise(self) -> bool:
        """Whether each row is changed by itself, given nothing but its own values."""
        return False

    @property
    def kept(self) -> tuple[tuple[KeptStatistic, Exactness], ...]:
        """What is kept of the changed columns, and how far."""
        return ()

    @property
    def households(self) -> bool:
        """Whether what is kept is kept of households, not of rows."""
        return self.household is not None

    @property
    def terms(self) -> tuple[tuple[str, str], ...]:
        """The name of the step and its columns, and what it reads beside them, as a guarantee of form lists them."""
        term = (self.kind, ", ".join(self.changes))
        return (term, (BESIDE, ", ".join(self.beside))) if self.beside else (term,)

    def rests_on(self, kept: KeptStatistic) -> frozenset[str] | None:  # noqa: ARG002 - most are all the same
        """Return the columns that a statistic speaks of; None: of all there are."""
        return frozenset((*self.changes, *self.within))

    def disturbs(self, columns: frozenset[str] | None) -> bool:
        """Whether a statistic of some columns, of all where none are named, may be another after this step."""
        return self.leaves_out or columns is None or not columns.isdisjoint(self.changes)

    def check_beside(self, before: tuple[Masking, ...], after: tuple[Masking, ...]) -> None:  # noqa: ARG002 - most mind none
        """Refuse masks that cannot come before or after this one."""
        for step in after:
            both = sorted({*self.emptied} & {*step.changes, *step.reads})
            if both:
                raise InvalidParameter(
                    f"cells of {both[0]!r} may be empty after the step {self.kind!r}, and the step {step.kind!r} "
                    "works on it afterwards: put that step before."
                )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:  # noqa: ARG002 - nothing is guaranteed to anyone
        """Guarantee nothing but a masked table; what reads one row alone keeps a guarantee that follows."""
        if isinstance(inner.loss, Syntactic):
            return replace(inner, loss=replace(inner.loss, parameters=(*self.terms, *inner.loss.parameters)))
        if inner.loss is not None and self.record_wise:
            return inner
        return StepGuarantee(Syntactic(CRITERION, self.terms), (BECAUSE,))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim what is kept, where no other step changes what it speaks of; the first one says what was changed."""
        masks = tuple(maskings(basis.steps))
        others = [step for step in masks if step is not self]
        kept = [
            self.claim(what, how, basis)
            for what, how in self.kept
            if not any(step.disturbs(self.rests_on(what)) for step in others)
        ]
        return (*kept, *self.changed(basis))

    def changed(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Return what the first mask says for all of them: which columns were changed."""
        masks = tuple(maskings(basis.steps))
        return (_masked(masks, basis),) if self is masks[0] else ()

    def claim(self, kept: KeptStatistic, how: Exactness, basis: ClaimBasis) -> Preservation:
        """Return the claim that a statistic of the changed columns is kept."""
        return Preservation(
            columns=self.changes,
            kept=kept,
            how=how,
            unit=basis.unit,
            theorem=(self.source,),
            preconditions=proved(_MADE),
            not_protected=(MEASURED, SUBGROUPS),
            share=self.share_of(kept),
            within=self.within or None,
            households=True if self.households else None,
        )

    def share_of(self, kept: KeptStatistic) -> Fraction | None:  # noqa: ARG002 - most state none
        """Return the share that a claim about a statistic states."""
        return None


def _masked(masks: tuple[Masking, ...], basis: ClaimBasis) -> Masked:
    return Masked(
        columns=tuple(dict.fromkeys(name for step in masks for name in step.changes)),
        unit=basis.unit,
        theorem=(_MASKING_NONE,),
        preconditions=proved(_MADE),
        not_protected=(MEASURED, UNMASKED),
    )


def stays(step: Masking, steps: tuple[Step, ...], columns: tuple[str, ...]) -> bool:
    """Whether no mask after a step changes some columns, or leaves out rows."""
    masks = tuple(maskings(steps))
    return not any(later.disturbs(frozenset(columns)) for later in masks[masks.index(step) + 1 :])


def reads_beside(guarantee: StepGuarantee) -> bool:
    """Whether some step that follows reads more of the original than what the steps before it leave."""
    loss = guarantee.loss
    return isinstance(loss, Syntactic) and any(name == BESIDE for name, _ in loss.parameters)


def alike(names: tuple[str, ...]) -> str:
    """Return within which groups of rows a step works, in words; nothing where it works on all together.

    >>> alike(("region",))
    ', in each group of rows alike in column “region” by itself'
    """
    return f", in each group of rows alike in {some(names)} by itself" if names else ""


def maskings(steps: tuple[Step, ...]) -> Iterator[Masking]:
    """Yield the steps that change values."""
    return (step for step in steps if isinstance(step, Masking))


def some(names: tuple[str, ...]) -> str:
    """Return columns in words.

    >>> some(("age",)), some(("age", "income"))
    ('column “age”', 'columns “age” and “income”')
    """
    quoted = [f"“{name}”" for name in names]
    if len(quoted) == 1:
        return f"column {quoted[0]}"
    return f"columns {', '.join(quoted[:-1])} and {quoted[-1]}"


def check_columns(names: tuple[str, ...]) -> None:
    """Refuse a step that changes nothing, or a column twice."""
    if not names or len(set(names)) < len(names):
        raise InvalidParameter("a mask changes one column at least, each once.")
