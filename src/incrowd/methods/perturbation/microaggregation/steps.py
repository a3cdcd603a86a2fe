"""Steps: rows stand in groups of at least k, and each shows what its group has in common."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.claims.crowds import Anonymity
from incrowd.core.steps.step import ClaimBasis, StepGuarantee
from incrowd.core.terms import Theorem
from incrowd.criteria.demand import COUNTED, HOMOGENEITY, MINIMALITY, Form, form_assumptions
from incrowd.criteria.k_anonymity import KAnonymity
from incrowd.errors import InvalidParameter
from incrowd.methods.perturbation.steps import Exactness, KeptStatistic, Masking, check_columns, some, stays

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim
    from incrowd.core.unit import Unit


class GroupingRule(StrEnum):
    """How rows are put into groups."""

    MDAV = "mdav"
    UNIVARIATE = "univariate"
    GOWER = "gower"


_WORDS = {
    GroupingRule.MDAV: "all named columns together, around the rows that lie farthest out",
    GroupingRule.UNIVARIATE: "each column by itself, with the least squared differences",
    GroupingRule.GOWER: "numbers and categories together, by Gower's distance, around the rows that lie farthest out",
}


@dataclass(frozen=True, kw_only=True)
class AggregateRows(Masking):
    """Rows stand in groups of at least k; numbers become their mean, categories the most common one.

    `quasi`: whether all quasi-identifiers are grouped together, or within groups of rows that agree in them; only then
    is nobody's combination rare.
    """

    kind: ClassVar[str] = "aggregate"
    title: ClassVar[str] = "Means of groups"
    source: ClassVar[Theorem] = Theorem(
        "mean-of-group-means", "the mean of group means, weighted by the sizes of groups, is the mean of all"
    )

    columns: tuple[str, ...]
    categories: tuple[str, ...]
    grouping: GroupingRule
    k: int
    quasi: tuple[str, ...] | None = None
    weight: str | None = None

    def __post_init__(self) -> None:
        check_columns(self.columns)
        if self.k < 2:
            raise InvalidParameter("groups have at least two rows: let k be 2 or more.")
        if not set(self.categories) <= set(self.columns) or set(self.within) & set(self.columns):
            raise InvalidParameter("categories are among the columns, and groups are made within other ones.")
        if self.quasi is not None:
            covered = set(self.quasi) <= {*self.columns, *self.within}
            if not covered or self.grouping is GroupingRule.UNIVARIATE:
                raise InvalidParameter("not all quasi-identifiers are grouped together.")

    @property
    def changes(self) -> tuple[str, ...]:
        """The columns whose values are changed."""
        return self.columns

    @property
    def kept(self) -> tuple[tuple[KeptStatistic, Exactness], ...]:
        """What is kept: means of numbers."""
        means = KeptStatistic.MEANS if self.weight is None else KeptStatistic.WEIGHTED_MEANS
        return () if self.categories else ((means, Exactness.ROUNDED),)

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns that are read beside those that are changed."""
        return self.within if self.weight is None else (*self.within, self.weight)

    def rests_on(self, kept: KeptStatistic) -> frozenset[str] | None:  # noqa: ARG002 - the same for all
        """Return the columns that a statistic speaks of, that of the weights too."""
        return frozenset((*self.changes, *self.reads))

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        inside = f" within rows that agree in {some(self.within)}" if self.within else ""
        common = ", categories the most common one" if self.categories else ""
        weighted = "" if self.weight is None else f" by the weights in {some((self.weight,))}"
        return (
            f"In {some(self.columns)}, groups of at least {self.k} rows{inside} are made ({_WORDS[self.grouping]}); "
            f"every number becomes the mean of its group{weighted}{common}. The groups look at all rows."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Guarantee a masked table; where all quasi-identifiers end in groups, also a form."""
        around = super().around(inner, unit)
        if self.quasi is None or not around.syntactic:
            return around
        return replace(around, assumes=around.assumes | form_assumptions(unit))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim what is kept, and k-anonymity where all quasi-identifiers end in groups and stay as they are."""
        kept = super().claims(basis)
        if self.quasi is None or not stays(self, basis.steps, self.quasi):
            return kept
        form = Form(self.quasi, basis.unit, (MINIMALITY,)).basis(COUNTED, (HOMOGENEITY,))
        rows = basis.unit.max_rows
        people = -(-self.k // rows) if rows > 1 else None
        return (Anonymity(k=self.k, people=people, theorem=(KAnonymity.theorem,), **form), *kept)
