"""Steps: survey weights are scaled until they add up, in each stratum, to what they did before rows were left out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.terms import Theorem
from incrowd.errors import InvalidParameter
from incrowd.methods.perturbation.steps import Exactness, KeptStatistic, Masking, some

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim
    from incrowd.core.steps.step import ClaimBasis

_READ = "the rows as they were read"


@dataclass(frozen=True, kw_only=True)
class CalibrateWeights(Masking):
    """Weights are multiplied so that their sums in the groups of each margin are those of the rows as they were read.

    One margin is met by one multiplication; several are raked, one after the other, until all are met but for a
    `tolerance`, a share of each sum.
    """

    kind: ClassVar[str] = "calibrate weights"
    title: ClassVar[str] = "Calibrate weights"
    source: ClassVar[Theorem] = Theorem(
        "iterative-fitting",
        "Deming & Stephan 1940, iterative proportional fitting: after multiplying by total over "
        "sum, the sum is the total; Deville & Särndal 1992",
    )

    weight: str
    margins: tuple[tuple[str, ...], ...]
    tolerance: Fraction

    def __post_init__(self) -> None:
        if not self.margins or not all(self.margins) or any(self.weight in margin for margin in self.margins):
            raise InvalidParameter("weights are calibrated to margins: one or more sets of other columns.")
        if not 0 < self.tolerance <= Fraction(1, 100):
            raise InvalidParameter("the tolerance of raking is a share of each sum, above 0 and at most 1/100.")

    @property
    def changes(self) -> tuple[str, ...]:
        """The columns whose values are changed."""
        return (self.weight,)

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns that are read beside those that are changed."""
        return tuple(dict.fromkeys(name for margin in self.margins for name in margin))

    @property
    def beside(self) -> tuple[str, ...]:
        """What is read that is never released."""
        return (_READ,)

    @property
    def kept(self) -> tuple[tuple[KeptStatistic, Exactness], ...]:
        """What is kept: the sums of weights, margin by margin."""
        how = Exactness.ROUNDED if len(self.margins) == 1 else Exactness.NEARLY
        return ((KeptStatistic.TOTALS, how),) * len(self.margins)

    def check_beside(self, before: tuple[Masking, ...], after: tuple[Masking, ...]) -> None:
        """Refuse masks that change weights or margins, and those that leave out rows afterwards."""
        for step in (*before, *after):
            both = sorted({*self.changes, *self.reads} & set(step.changes))
            if both:
                raise InvalidParameter(
                    f"weights are calibrated by {both[0]!r}, which the step {step.kind!r} changes: calibrate by other "
                    "columns, or leave that step out."
                )
        if any(step.leaves_out for step in after):
            raise InvalidParameter("rows are left out after weights were calibrated: calibrate them afterwards.")

    def disturbs(self, columns: frozenset[str] | None) -> bool:
        """Whether a statistic of some columns may be another after this step."""
        return columns is None or self.weight in columns

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim the sums of each margin, where nothing changes them and rows were left out before only."""
        masks = [step for step in basis.steps if isinstance(step, Masking)]
        place = next(number for number, step in enumerate(masks) if step is self)
        try:
            self.check_beside(tuple(masks[:place]), tuple(masks[place + 1 :]))
        except InvalidParameter:
            return self.changed(basis)
        share = self.tolerance if len(self.margins) > 1 else None
        sums = [
            replace(self.claim(what, how, basis), within=margin, share=share)
            for margin, (what, how) in zip(self.margins, self.kept, strict=True)
        ]
        return (*sums, *self.changed(basis))

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        groups = "; and by ".join(some(margin) for margin in self.margins)
        near = "" if len(self.margins) == 1 else f", up to a share of {float(self.tolerance):g} of each sum"
        return (
            f"Weights in {some((self.weight,))} are multiplied until their sums by {groups} are those of the rows as "
            f"they were read{near}."
        )
