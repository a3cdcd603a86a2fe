"""Steps: values of rows are masked; what that keeps of a table is claimed, what it hides is measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.claims.claim import Claim, proved
from incrowd.core.loss import Syntactic
from incrowd.core.steps.step import Grounds, Promise, Step
from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from incrowd.core.unit import Unit

CRITERION = "perturbation"
BECAUSE = "values are masked: how well that hides people is measured, not promised"
UNMASKED = "columns that were not changed: they show what they showed"
MEASURED = (
    "anything: a masked value may be near the true one, and rows may be told apart; `assess` and `attack` measure it"
)
SUBGROUPS = "parts of the table: what is kept of all rows need not be kept of some of them"
_MADE = "the program makes it so, whatever the rows are"


class KeptStatistic(StrEnum):
    """What of a table a mask can keep."""

    VALUES = "every value of each column occurs as often as before"
    MEANS = "the mean of each column"
    MOMENTS = "the mean of each column and all variances and covariances among them"
    COVARIANCES = "all covariances among different columns"
    CORRELATIONS = "all correlations among the columns"
    RANKS = "the rank of each value, within the stated share of the rows"
    TABLES = "every table that leaves the area out"
    FREQUENCIES = "how often each value occurs"
    RANK_CORRELATIONS = "rank correlations, among the columns and with those that the model is given"
    INSIDE = "every value that lies between the bounds"
    NEARNESS = "each value, within one base of the rounding"


class Exactness(StrEnum):
    """How far something is kept."""

    EXACT = "exactly"
    ROUNDED = "up to the rounding of numbers"
    MEAN = "on average over the coins"
    LIMIT = "ever better with more rows"
    ESTIMATED = "by an unbiased estimate from what is published"


@dataclass(frozen=True, kw_only=True)
class Preservation(Claim):
    """What is kept of the rows as they were read: limited per person, recoded, without those that are left out."""

    kind = "preserved statistics"
    rank: ClassVar[int] = 60

    columns: tuple[str, ...]
    kept: KeptStatistic
    how: Exactness
    share: Fraction | None = None

    @property
    def sentence(self) -> str:
        """What is claimed, for people."""
        return f"Kept of the rows as they were read, {self.how}: {self.kept}."


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
    """Values of some columns are changed.  `record_wise`: each row by itself, given nothing but its own values."""

    glyph: ClassVar[str | None] = "coarser"
    record_wise: ClassVar[bool] = False
    source: ClassVar[str]
    """The theorem or method by which the statistics are kept."""

    @property
    def changes(self) -> tuple[str, ...]:
        """The columns whose values are changed."""
        raise NotImplementedError

    @property
    def kept(self) -> tuple[tuple[KeptStatistic, Exactness], ...]:
        """What is kept of the changed columns, and how far."""
        return ()

    @property
    def term(self) -> tuple[str, str]:
        """The name of the step and its columns, as a promise of form lists them."""
        return self.kind, ", ".join(self.changes)

    def around(self, inner: Promise, unit: Unit) -> Promise:  # noqa: ARG002 - nothing is promised to anyone
        """Promise nothing but a masked table; what reads one row alone keeps a promise that follows."""
        if inner.loss is None:
            return Promise(Syntactic(CRITERION, (self.term,)), (BECAUSE,))
        if isinstance(inner.loss, Syntactic):
            return replace(inner, loss=replace(inner.loss, parameters=(self.term, *inner.loss.parameters)))
        if self.record_wise:
            return inner
        return Promise(Syntactic(CRITERION, (self.term,)), (BECAUSE,))

    def claims(self, grounds: Grounds) -> tuple[Claim, ...]:
        """Claim what is kept, where no other step changes the same columns; the first one says what was changed."""
        masks = tuple(maskings(grounds.steps))
        others = {name for step in masks if step is not self for name in step.changes}
        kept = () if others & set(self.changes) else self.kept
        changed = (_masked(masks, grounds),) if self is masks[0] else ()
        return (*(self._claim(what, how, grounds) for what, how in kept), *changed)

    def _claim(self, kept: KeptStatistic, how: Exactness, grounds: Grounds) -> Preservation:
        return Preservation(
            columns=self.changes,
            kept=kept,
            how=how,
            unit=str(grounds.unit),
            theorem=self.source,
            preconditions=proved(_MADE),
            not_protected=(MEASURED, SUBGROUPS),
            share=self.share_of(kept),
        )

    def share_of(self, kept: KeptStatistic) -> Fraction | None:  # noqa: ARG002 - most state none
        """Return the share that a claim about a statistic states."""
        return None


def _masked(masks: tuple[Masking, ...], grounds: Grounds) -> Masked:
    return Masked(
        columns=tuple(dict.fromkeys(name for step in masks for name in step.changes)),
        unit=str(grounds.unit),
        theorem="none: what masking hides depends on the rows and on what others know",
        preconditions=proved(_MADE),
        not_protected=(MEASURED, UNMASKED),
    )


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
