"""Steps: the items of a set-valued column are made coarser until no few of them tell anyone apart."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.loss import Syntactic
from incrowd.core.steps.rows import Arrange
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee
from incrowd.criteria.demand import BECAUSE
from incrowd.criteria.itemsets import ASSUMES, KmAnonymity, KmClaim
from incrowd.methods.anonymity.syntactic.steps import require_share

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim
    from incrowd.core.unit import Unit


@dataclass(frozen=True)
class CutItems(Step):
    """Items are replaced by coarser ones, or left out everywhere, until no combination of a few is rare."""

    kind: ClassVar[str] = "cut items"
    title: ClassVar[str] = "Make items coarser"
    glyph: ClassVar[str | None] = "coarser"

    items: str
    separator: str
    columns: tuple[str, ...]
    k: int
    m: int
    suppression: Fraction

    def __post_init__(self) -> None:
        require_share(self.suppression)
        _ = self.criterion

    @property
    def criterion(self) -> KmAnonymity:
        """What is demanded of every class."""
        return KmAnonymity(self.items, self.k, self.m)

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        classes = " among rows that agree in the other quasi-identifiers" if self.columns else ""
        return (
            f"The items in “{self.items}” are replaced by coarser ones until every combination of up to {self.m} of "
            f"them that occurs, occurs in {self.k} rows{classes}. Items left out: at most a share of "
            f"{self.suppression}. This looks at all rows."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:  # noqa: ARG002 - one row holds all items of one person
        """Guarantee a form, and nothing to those who know more."""
        if inner.loss is not None:
            return inner
        return StepGuarantee(Syntactic(KmClaim.kind, (("k", str(self.k)), ("m", str(self.m)))), (BECAUSE,), ASSUMES)

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim that no combination of a few items is rare."""
        return (self.criterion.claim(self.separator, self.columns, basis.unit),)


@dataclass(frozen=True)
class ArrangeSets(Arrange):
    """Rows are published in the order of their values, sets in one way of writing."""

    kind: ClassVar[str] = "arrange sets"
