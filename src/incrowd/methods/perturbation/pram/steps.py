"""Steps: categories change at random by a matrix of probabilities."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.claims.claim import GROUPS, assumed, proved
from incrowd.core.claims.privacy import PurePrivacy
from incrowd.core.displacement import Displacement, DistanceKind
from incrowd.core.loss import Pure
from incrowd.core.steps.step import ClaimBasis, StepGuarantee, assumptions
from incrowd.core.terms import Condition, Exposure, Theorem
from incrowd.core.unit import Adjacency, ExtraRowsRule
from incrowd.errors import InvalidParameter
from incrowd.methods.perturbation.coding.steps import CodeEnds
from incrowd.methods.perturbation.microaggregation.steps import AggregateRows
from incrowd.methods.perturbation.pram.matrix import Matrix, check_matrix, invertible, logarithm_up, ratio, staying
from incrowd.methods.perturbation.steps import (
    Exactness,
    KeptStatistic,
    Masking,
    alike,
    check_columns,
    reads_beside,
    some,
)

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim
    from incrowd.core.unit import Unit

Labels = tuple[str | None, ...]

_SOURCE = Theorem(
    "pram-ratio",
    "Warner 1965; Gouweleeuw et al. 1998: each record is changed by itself, and no outcome is"
    " likelier by more than the largest ratio within a column of the matrix",
)
_EVERY = Condition(
    "matrix-fixed-without-rows",
    "every released column is changed by a matrix without zeros that was fixed without the rows",
)
_ALONE = Condition("row-changed-alone", "each row is changed by itself, by coins of its own")
_NUMBER = Exposure(
    "number-of-rows-shown",
    "how many rows there are: the output has as many, and a replaced row leaves their number as it is",
)


@dataclass(frozen=True)
class Channel:
    """How columns change together: what each can show, and the probabilities over all combinations, the last fastest.

    A category stays with probability `stay` and else becomes another of its block; or `matrix` says all.  Where neither
    is told, the matrix was made from the rows.
    """

    columns: tuple[str, ...]
    labels: tuple[Labels, ...]
    stay: Fraction | None = None
    blocks: tuple[int, ...] | None = None
    matrix: Matrix | None = None

    def __post_init__(self) -> None:
        if len(self.columns) != len(self.labels) or not self.columns:
            raise InvalidParameter("each column that changes has a list of what it can show.")
        if self.stay is not None and (self.matrix is not None or not 0 <= self.stay <= 1):
            raise InvalidParameter("a category stays with a probability from 0 to 1, or a matrix says all.")
        if self.blocks is not None and (self.stay is None or len(self.blocks) != self.size):
            raise InvalidParameter("blocks are told for each category, beside the probability to stay.")
        if self.matrix is not None:
            check_matrix(self.matrix, self.size, ", ".join(self.columns))

    @property
    def size(self) -> int:
        """How many combinations there are."""
        return math.prod(map(len, self.labels))

    @cached_property
    def probabilities(self) -> Matrix | None:
        """The probabilities, or None if they were made from the rows."""
        if self.stay is None:
            return self.matrix
        return staying(self.stay, self.blocks or (0,) * self.size)

    @property
    def ratio(self) -> Fraction | None:
        """By how much an outcome is likelier for one record than for another, at most; None without a bound."""
        return None if self.probabilities is None else ratio(self.probabilities)


@dataclass(frozen=True, kw_only=True)
class Randomize(Masking):
    """Categories change at random; `others` are released columns that do not.

    `drafted`: some domain was drafted from rows; `drops`: a row may be left out for what it holds.
    """

    kind: ClassVar[str] = "randomize"
    title: ClassVar[str] = "Change at random"
    glyph: ClassVar[str | None] = None
    source: ClassVar[Theorem] = Theorem(
        "pram-unbiased", "Gouweleeuw et al. 1998: P⁻ᵀ applied to the released counts is unbiased"
    )

    channels: tuple[Channel, ...]
    others: tuple[str, ...]
    drafted: bool
    drops: bool

    def __post_init__(self) -> None:
        check_columns(self.changes)
        if set(self.others) & set(self.changes):
            raise InvalidParameter("a column is changed, or it is not.")

    @property
    def changes(self) -> tuple[str, ...]:
        """The columns whose values are changed."""
        return tuple(name for channel in self.channels for name in channel.columns)

    @property
    def displaced(self) -> Mapping[str, Displacement]:
        """The columns whose values are moved, and how far."""
        return {
            name: Displacement(DistanceKind.CATEGORY, 0.1 if channel.stay is None else float(1 - channel.stay))
            for channel in self.channels
            for name in channel.columns
        }

    @property
    def kept(self) -> tuple[tuple[KeptStatistic, Exactness], ...]:
        """What is kept: frequencies, on average or by an estimate; of rows, so not where households change as one."""
        known = [channel.probabilities for channel in self.channels]
        if self.household is not None:
            return ()
        if None in known:
            return ((KeptStatistic.FREQUENCIES, Exactness.MEAN),) if not any(known) else ()
        possible = all(invertible(each) for each in known if each is not None)
        return ((KeptStatistic.FREQUENCIES, Exactness.ESTIMATED),) if possible else ()

    @property
    def record_wise(self) -> bool:
        """Whether each row is changed by itself: by probabilities that were not made from all rows."""
        return self.household is None and all(channel.probabilities is not None for channel in self.channels)

    def ratio(self, unit: Unit) -> Fraction | None:
        """Return by how much a whole output is likelier for one unit than for another in its place, at most."""
        one_row = unit.max_rows == 1 and unit.more is not ExtraRowsRule.DROP
        whole = not self.others and not self.drafted and not self.drops and self.record_wise
        if not whole or unit.adjacency is not Adjacency.REPLACE or not one_row:
            return None
        ratios = [channel.ratio for channel in self.channels]
        return None if None in ratios else math.prod((each for each in ratios if each is not None), start=Fraction(1))

    def check_beside(self, before: tuple[Masking, ...], after: tuple[Masking, ...]) -> None:
        """Refuse a mask before this one after which a column may show what has no probabilities here.

        Whether a row has such a value would else decide whether anything can be released.
        """
        super().check_beside(before, after)
        known = {
            name: frozenset(labels)
            for channel in self.channels
            for name, labels in zip(channel.columns, channel.labels, strict=True)
        }
        for step in before:
            strange = sorted(name for name in set(step.changes) & set(known) if not _listed(step, name, known[name]))
            if strange:
                raise InvalidParameter(
                    f"{strange[0]!r} changes at random among the values that its declaration lists, and after the step "
                    f"{step.kind!r} before it may show others. Read it at a higher level instead, or put that step "
                    "behind."
                )

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        known = all(channel.probabilities is not None for channel in self.channels)
        how = "by the probabilities named here" if known else "by probabilities made from all rows, which are not told"
        who = "row by row" if self.household is None else "for each household as one"
        return f"Categories of {some(self.changes)} change at random, {who}, {how}{alike(self.within)}."

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Guarantee ε to each record where the whole of it is changed; what follows reads the changed table alone."""
        worst = self.ratio(unit)
        if worst is None or reads_beside(inner):
            return super().around(inner, unit)
        return StepGuarantee(Pure(logarithm_up(worst)), (_SOURCE,), assumptions(unit))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim what is kept, and differential privacy where it is guaranteed."""
        kept = super().claims(basis)
        if basis.guarantee.syntactic or self.ratio(basis.unit) is None:
            return kept
        unit = basis.unit
        private = PurePrivacy(
            epsilon=basis.epsilon,
            adjacency=unit.adjacency,
            max_rows=unit.max_rows,
            unit=unit,
            theorem=(_SOURCE,),
            preconditions=(*proved(_EVERY, _ALONE), *assumed(basis.guarantee.assumes)),
            not_protected=(GROUPS, _NUMBER),
        )
        return (private, *kept)


def _listed(step: Masking, name: str, labels: frozenset[str | None]) -> bool:
    """Whether a column shows after a step only what it could show before, or bounds that are listed too."""
    if isinstance(step, CodeEnds):
        ends = next((each.bottom, each.top) for each in step.columns if each.column == name)
        return all(str(end) in labels for end in ends if end is not None)
    if isinstance(step, AggregateRows):
        return name in step.categories
    return isinstance(step, Randomize) or any(kept is KeptStatistic.VALUES for kept, _ in step.kept)
