"""Its one step, and its output."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from incrowd.core.claims.claim import GROUPS, Claim, assumed, proved
from incrowd.core.claims.privacy import PurePrivacy
from incrowd.core.loss import Laplace
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee, assumptions
from incrowd.core.terms import Condition, Theorem
from incrowd.methods.outcomes.histogram import Tabular

if TYPE_CHECKING:
    from incrowd.core.unit import Unit

_SOURCE = Theorem("toy-noise", "Ghosh, Roughgarden & Sundararajan 2009 (two-sided geometric noise)")
_NOISY = Condition("toy-total-noisy", "the total gets noise")


@dataclass(frozen=True)
class AddToTotal(Step):
    """The number of rows gets integer Laplace noise."""

    kind: ClassVar[str] = "add to total"
    title: ClassVar[str] = "Count with noise"

    scale: Fraction

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        return f"The number of rows gets integer Laplace noise of scale {self.scale}."

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Guarantee what the noise costs somebody with all their rows."""
        return StepGuarantee(Laplace(self.scale, unit.max_rows), (_SOURCE,), assumptions(unit))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim differential privacy."""
        unit = basis.unit
        return (
            PurePrivacy(
                epsilon=basis.epsilon,
                adjacency=unit.adjacency,
                max_rows=unit.max_rows,
                scale=self.scale,
                unit=unit,
                theorem=(_SOURCE,),
                preconditions=(*proved(_NOISY), *assumed(basis.guarantee.assumes)),
                not_protected=(GROUPS,),
            ),
        )


@dataclass(frozen=True, eq=False)
class Total(Tabular):
    """One number."""

    form: ClassVar[str] = "total"

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
        """Return what the output shows: nothing but itself."""
        return {"numbers": 1}
