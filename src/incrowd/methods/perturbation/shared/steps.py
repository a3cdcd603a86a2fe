"""Masking steps: values of rows are changed; what that preserves of a table is claimed, what it hides is measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from incrowd.core.claims.claim import Claim, proved
from incrowd.core.claims.privacy import Anonymity
from incrowd.core.displacement import Displacement
from incrowd.core.loss import Syntactic
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee
from incrowd.core.terms import Condition, Exposure, KeyedText, Theorem
from incrowd.core.unit import Unit
from incrowd.criteria.demand import COUNTED, HOMOGENEITY, MINIMALITY, Form
from incrowd.criteria.k_anonymity import KAnonymity
from incrowd.errors import InvalidParameter

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
UNRELEASED = "reads-unreleased"
"""The parameter of a guarantee of form that names what a step reads of the original and does not release."""
_MADE = Condition("made-so", "the program makes it so, whatever the rows are")
_MASKING_NONE = Theorem("masking-none", "none: what masking hides depends on the rows and on what others know")


class KeptStatistic(KeyedText):
    """A statistic of a table that a mask can preserve."""

    VALUES = "values", "every value of each column occurs as often as before"
    MEANS = "means", "the mean of each column"
    WEIGHTED_MEANS = "weighted-means", "the mean of each column, by the survey weights"
    TOTALS = "weight-totals", "the sum of the survey weights"
    SHOWN = "shown-values", "every value that is shown"
    MOMENTS = "moments", "the mean of each column and all variances and covariances among them"
    COVARIANCES = "covariances", "all covariances among different columns"
    CORRELATIONS = "correlations", "all correlations among the columns"
    RANKS = "ranks", "the rank of each value, within the stated share of the rows or one place"
    TABLES = "tables-without-area", "every table that leaves the area out"
    FREQUENCIES = "frequencies", "how often each value occurs"
    RANK_CORRELATIONS = (
        "rank-correlations",
        (
            "rank correlations, among the columns and with those that the model is given, as far as the normal model "
            "of their scores is right"
        ),
    )
    INSIDE = "values-between-bounds", "every value that lies between the bounds"
    NEARNESS = "nearness", "each value, within one base of the rounding"


class Exactness(KeyedText):
    """How exactly a statistic is preserved."""

    EXACT = "exact", "exactly"
    ROUNDED = "rounded", "up to the rounding of numbers"
    MEAN = "on-average", "on average over the randomness"
    LIMIT = "in-the-limit", "ever better with more rows"
    ESTIMATED = "unbiased-estimate", "by an unbiased estimate from what is published"
    NEARLY = "up-to-share", "but for the stated share of it"


Statistics = tuple[tuple[KeptStatistic, Exactness], ...]


@dataclass(frozen=True, kw_only=True)
class Preservation(Claim):
    """A statistic is preserved of the rows as they were read: limited per person, recoded, not suppressed.

    `within` names the columns whose groups each preserve it.  With `households`, each household counts once.
    """

    kind = "preserved statistics"
    rank: ClassVar[int] = 60

    columns: tuple[str, ...]
    statistic: KeptStatistic
    exactness: Exactness
    share: Fraction | None = None
    within: tuple[str, ...] | None = None
    households: bool | None = None

    def __post_init__(self) -> None:
        if self.within == () or self.households is False:
            raise InvalidParameter("`within` names at least one column or is absent; `households` is true or absent.")

    @property
    def sentence(self) -> str:
        units = "households as they were read, each counted once" if self.households else "rows as they were read"
        groups = "" if self.within is None else f", in each group of rows alike in {column_list(self.within)}"
        return f"Kept of the {units}, {self.exactness.text}{groups}: {self.statistic.text}."


@dataclass(frozen=True, kw_only=True)
class Masked(Claim):
    """Values were changed, and nothing is claimed about how well that hides anyone."""

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

    `within`: in each group of rows that agree in these columns separately.  `household`: once for each household that
    this column identifies, whose rows share the values.
    """

    glyph: ClassVar[str | None] = "coarser"
    suppresses_rows: ClassVar[bool] = False
    row_by_row: ClassVar[bool] = False
    """Whether each row is changed separately, from nothing but its own values, where households are not read."""
    numeric: ClassVar[bool] = False
    """Whether the step computes with the numbers of the columns that it changes."""
    source: ClassVar[Theorem]
    """The theorem or method by which the statistics are preserved."""

    within: tuple[str, ...] = ()
    household: str | None = None

    def __post_init__(self) -> None:
        if not self.changes or len(set(self.changes)) < len(self.changes):
            raise InvalidParameter("a mask changes at least one column, and each column once.")

    @property
    def changes(self) -> tuple[str, ...]:
        """The columns whose values are changed."""
        raise NotImplementedError

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns that are read besides those that are changed."""
        return self.within

    @property
    def unreleased(self) -> tuple[str, ...]:
        """What is read and never released."""
        return () if self.household is None else (self.household,)

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns whose numbers the step computes with."""
        return self.changes if self.numeric else ()

    @property
    def displaced(self) -> Mapping[str, Displacement]:
        """How far the values of each column may move: what an attacker knows who reads the steps."""
        return {name: Displacement() for name in self.changes if name not in self.emptied}

    @property
    def emptied(self) -> tuple[str, ...]:
        """The columns in which cells may be suppressed."""
        return ()

    @property
    def record_wise(self) -> bool:
        """Whether each row is changed separately, from nothing but its own values."""
        return self.row_by_row and self.household is None

    @property
    def statistics(self) -> Statistics:
        """The statistics of the changed columns that are preserved, and how exactly."""
        return ()

    @property
    def shares(self) -> Mapping[KeptStatistic, Fraction]:
        """The shares that claims about some statistics state."""
        return {}

    @property
    def households(self) -> bool:
        """Whether statistics are preserved of households, not of rows."""
        return self.household is not None

    @property
    def terms(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The parameters of a guarantee of form: the step with its columns, and what it reads without releasing it."""
        term = (self.kind, self.changes)
        return (term, (UNRELEASED, self.unreleased)) if self.unreleased else (term,)

    def depends_on(self, statistic: KeptStatistic) -> frozenset[str] | None:
        """Return the columns that a statistic depends on; None for all columns."""
        return frozenset((*self.changes, *self.within))

    def disturbs(self, columns: frozenset[str] | None) -> bool:
        """Whether a statistic of some columns may change in this step; None stands for all columns."""
        return self.suppresses_rows or columns is None or not columns.isdisjoint(self.changes)

    def stays_among(self, name: str, labels: frozenset[str | None]) -> bool:
        """Whether a column with values among some labels still has such values only after this step."""
        return any(statistic is KeptStatistic.VALUES for statistic, _ in self.statistics)

    def check_order(self, before: tuple[Masking, ...], after: tuple[Masking, ...]) -> None:
        """Refuse masks that cannot come before or after this one."""
        for step in after:
            both = sorted({*self.emptied} & {*step.changes, *step.reads})
            if both:
                raise InvalidParameter(
                    f"{self.kind!r} may empty cells of {both[0]!r}, which {step.kind!r} needs: put that step first."
                )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Guarantee nothing but a masked table; a step that reads one row alone preserves a guarantee that follows."""
        if isinstance(inner.loss, Syntactic):
            return replace(inner, loss=replace(inner.loss, parameters=(*self.terms, *inner.loss.parameters)))
        if inner.loss is not None and self.record_wise:
            return inner
        return StepGuarantee(Syntactic(CRITERION, self.terms), (BECAUSE,))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim the statistics that no other step disturbs; the first mask also claims which columns were changed."""
        others = [step for step in maskings(basis.steps) if step is not self]
        preserved = [
            self.preservation(statistic, how, basis)
            for statistic, how in self.statistics
            if not any(step.disturbs(self.depends_on(statistic)) for step in others)
        ]
        return (*preserved, *self.masked_claim(basis))

    def masked_claim(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Return the claim of the first mask for all of them: which columns were changed."""
        masks = tuple(maskings(basis.steps))
        if self is not masks[0]:
            return ()
        return (
            Masked(
                columns=tuple(dict.fromkeys(name for step in masks for name in step.changes)),
                unit=basis.unit,
                theorem=(_MASKING_NONE,),
                preconditions=proved(_MADE),
                not_protected=(MEASURED, UNMASKED),
            ),
        )

    def preservation(self, statistic: KeptStatistic, how: Exactness, basis: ClaimBasis) -> Preservation:
        """Return the claim that a statistic of the changed columns is preserved."""
        return Preservation(
            columns=self.changes,
            statistic=statistic,
            exactness=how,
            unit=basis.unit,
            theorem=(self.source,),
            preconditions=proved(_MADE),
            not_protected=(MEASURED, SUBGROUPS),
            share=self.shares.get(statistic),
            within=self.within or None,
            households=True if self.households else None,
        )


@dataclass(frozen=True, kw_only=True)
class ColumnMasking(Masking):
    """Values of the named columns are changed."""

    columns: tuple[str, ...]

    @property
    def changes(self) -> tuple[str, ...]:
        return self.columns


def unchanged_after(step: Masking, steps: tuple[Step, ...], columns: tuple[str, ...]) -> bool:
    """Whether no mask after a step changes some columns or suppresses rows."""
    masks = tuple(maskings(steps))
    return not any(later.disturbs(frozenset(columns)) for later in masks[masks.index(step) + 1 :])


def anonymity(k: int, quasi: tuple[str, ...], basis: ClaimBasis) -> Anonymity:
    """Return the claim of k-anonymity over the quasi-identifiers, in rows and in people."""
    rows = basis.unit.max_rows
    people = -(-k // rows) if rows > 1 else None
    form = Form(quasi, basis.unit, (MINIMALITY,)).basis(COUNTED, (HOMOGENEITY,))
    return Anonymity(k=k, people=people, theorem=(KAnonymity.theorem,), **form)


def reads_unreleased(guarantee: StepGuarantee) -> bool:
    """Whether a step that follows reads more of the original than what the steps before it leave."""
    loss = guarantee.loss
    return isinstance(loss, Syntactic) and any(name == UNRELEASED for name, _ in loss.parameters)


def maskings(steps: tuple[Step, ...]) -> Iterator[Masking]:
    """Yield the steps that change values."""
    return (step for step in steps if isinstance(step, Masking))


def by_group(names: tuple[str, ...]) -> str:
    """Return the groups of rows that a step works within, in words; nothing where it works on all rows together.

    >>> by_group(("region",))
    ', in each group of rows alike in column “region” by itself'
    """
    return f", in each group of rows alike in {column_list(names)} by itself" if names else ""


def column_list(names: tuple[str, ...]) -> str:
    """Return columns in words.

    >>> column_list(("age",)), column_list(("age", "income"))
    ('column “age”', 'columns “age” and “income”')
    """
    quoted = [f"“{name}”" for name in names]
    if len(quoted) == 1:
        return f"column {quoted[0]}"
    return f"columns {', '.join(quoted[:-1])} and {quoted[-1]}"
