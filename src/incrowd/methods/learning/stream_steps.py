"""The step of learning from samples: a fresh secret one for each round, of which one noisy sum by a column is taken."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.loss import Gaussian, Sampled, Sequence
from incrowd.core.steps.counts import Law
from incrowd.core.steps.samples import COINS
from incrowd.core.steps.step import Step, StepGuarantee, assumptions
from incrowd.core.terms import Theorem
from incrowd.core.unit import Adjacency
from incrowd.core.words import counted, share
from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from incrowd.core.unit import Unit

_COMPOSED = Theorem(
    "sampled-loss-distributions",
    "Koskela, Jälkö & Honkela 2020: privacy loss distributions of Poisson samples, all rounds together",
)


@dataclass(frozen=True)
class SampleGradients(Step):
    """In each round a coin of its own draws each row, and what the drawn rows add is summed by one column, with noise.

    A row that is drawn adds a whole number from −`residual` to `residual` to one sum: that of its class of the column
    of that round.  Rows added or removed, one for each unit: nothing is known here of people with several rows, whose
    rows would lie in several sums of a round.
    """

    kind: ClassVar[str] = "follow gradients of samples"
    title: ClassVar[str] = "Follow gradients of samples"
    glyph: ClassVar[str | None] = "drawn"

    rounds: int
    rate: Fraction
    residual: int
    scale: Fraction

    def __post_init__(self) -> None:
        if min(self.rounds, self.residual) < 1 or self.scale <= 0 or not 0 < self.rate < 1:
            raise InvalidParameter("samples are drawn for a round at least, at a rate between 0 and 1, with noise.")

    @property
    def design(self) -> str:
        """How rows are drawn."""
        return "Poisson, one secret coin per row and round"

    @property
    def coins(self) -> str:
        """Where the coins come from."""
        return "AES-256 in counter mode under a key from the operating system for each round, forgotten afterwards"

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        return (
            f"In each of {counted(self.rounds, 'round')}, a fresh secret coin for each row draws {share(self.rate)} on "
            "average; the drawn rows are counted by the classes of one column, or it is summed by how much the model "
            "is off for one class of the target. Every sum gets integer Gaussian noise of "
            f"{float(self.scale / self.residual):.4g} rows."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Guarantee what noise on all samples costs."""
        if inner.loss is not None:
            raise InvalidParameter("nothing else is summed beside samples.")
        if unit.max_rows > 1 or unit.adjacency is Adjacency.REPLACE:
            raise InvalidParameter(
                "a model is learned from samples where rows are added or removed, and everybody has one: write "
                "max_rows: 1 for people with more rows, or use another model."
            )
        one = Sampled(self.rate, Gaussian(self.scale, self.residual))
        reasons = (Law.GAUSSIAN.source, _COMPOSED)
        return StepGuarantee(Sequence((one,) * self.rounds), reasons, assumptions(unit) | {COINS})
