"""The steps of a private look: rows at several levels, and what each choice keeps, measured with one noise."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from incrowd.core.claims.claim import GROUPS, assumed, proved
from incrowd.core.claims.privacy import PurePrivacy
from incrowd.core.loss import Pure
from incrowd.core.steps.choices import LOOKED
from incrowd.core.steps.rows import Recode
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee, assumptions
from incrowd.core.terms import Condition
from incrowd.core.words import counted
from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim
    from incrowd.core.unit import Unit

FINENESS = 2**26
"""How many steps one expected row has: so fine that rounding is less than a row for tables of many millions."""
_MOVED = proved(
    Condition(
        "look-sums-bounded",
        "what is measured is a sum over cells of whole steps that a table of k and rate fixes, "
        "and one row moves it by at most the stated width",
    ),
    Condition(
        "look-noise-for-all", "the noise is made for a person who moves all choices at once, by all rows of theirs"
    ),
)


@dataclass(frozen=True)
class WeighedChoice:
    """Levels in the order of the recoded columns, k and rate; `width` is the most that a row moves, in 1/2^26 rows."""

    levels: tuple[int, ...]
    k: int
    rate: Fraction
    width: int


@dataclass(frozen=True)
class RecodeAtSeveral(Recode):
    """Each row is recoded by itself, by declared rules, at the levels of every choice."""

    kind: ClassVar[str] = "recode at several levels"

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        return f"{counted(len(self.columns), 'column')} are recoded row by row, by declared rules, for each choice."

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Let the noise guarantee what it does; rules drafted from rows would tell of them before any noise."""
        if self.drafted:
            raise InvalidParameter("with data-dependent rules, a private preview has no guarantee.")
        return inner

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim nothing: no label is published."""
        return ()


@dataclass(frozen=True)
class MeasureKept(Step):
    """For each choice, how many rows it is expected to keep, over its random sample; one noise for all."""

    kind: ClassVar[str] = "measure what is kept"
    title: ClassVar[str] = "Measure what each choice keeps"

    epsilon: Fraction
    rows: int
    choices: tuple[WeighedChoice, ...]

    @property
    def noise(self) -> str:
        """The name of the law."""
        return "integer cube" if len(self.choices) > 1 else "integer Laplace"

    @property
    def widths(self) -> tuple[int, ...]:
        """How far one row moves what each choice keeps."""
        return tuple(choice.width for choice in self.choices)

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        return (
            f"For {counted(len(self.choices), 'choice')} of levels, k and rate the number of rows that a release is "
            f"expected to keep is added up from all rows, and gets noise for an ε of {self.epsilon} in all."
        )

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Guarantee ε, where the noise was made for as many rows as a person has."""
        if inner.loss is not None or self.rows != unit.max_rows or not self.choices or min(self.widths) < 1:
            raise InvalidParameter("the noise of these steps, and what one unit moves, contradict each other.")
        return StepGuarantee(Pure(self.epsilon), (LOOKED,), assumptions(unit))

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim differential privacy of all that is shown."""
        unit = basis.unit
        private = PurePrivacy(
            epsilon=basis.epsilon,
            adjacency=unit.adjacency,
            max_rows=unit.max_rows,
            noise=self.noise,
            unit=unit,
            theorem=(LOOKED,),
            preconditions=(*_MOVED, *assumed(basis.guarantee.assumes)),
            not_protected=(GROUPS,),
        )
        return (private,)
