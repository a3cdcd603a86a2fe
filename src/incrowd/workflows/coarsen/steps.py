"""Steps of a coarser table: the release that it was made from, and how its labels rise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from incrowd.core.claims.privacy import Anonymity, Blending, Concentrated, Private, Pseudonymity, SampledCrowd, Surveyed
from incrowd.core.steps.around import AROUND
from incrowd.core.steps.step import ClaimBasis, Step, StepGuarantee, claims_of, inside, steps_of
from incrowd.errors import InvalidParameter
from incrowd.workflows.registry import check_of

if TYPE_CHECKING:
    from incrowd.core.claims.claim import Claim
    from incrowd.core.unit import Unit


@dataclass(frozen=True)
class Parent(Step):
    """A release was there already: its method, its name, the digest of its certificate, and its steps."""

    kind: ClassVar[str] = "parent"
    title: ClassVar[str] = "A released table"

    method: str
    id: str
    digest: str
    steps: tuple[Step, ...]

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        return f"The table of the release {self.id} is the source, as it was published."

    @property
    def held(self) -> tuple[Step, ...]:
        """The steps of the release."""
        return self.steps

    @property
    def charged(self) -> Parent:
        """The release that a ledger charged, through all tables that were made from it."""
        first = self.steps[0] if self.steps else None
        return first.charged if isinstance(first, Parent) else self

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        """Guarantee what the release guaranteed: whatever is computed from it alone keeps that."""
        if inner.loss is not None:
            raise InvalidParameter("nothing else is released where a table is made from a released one.")
        return inside(self.steps, unit)

    def claims(self, basis: ClaimBasis) -> tuple[Claim, ...]:
        """Claim what the release claims, as far as it holds for the columns that are left."""
        coarser = next((step for step in basis.steps if isinstance(step, Coarsen)), None)
        if coarser is None:
            raise InvalidParameter("these steps do not say what is made of the released table.")
        return inherited_claims(claims_of(ClaimBasis(basis.guarantee, self.steps, basis.numbers)), coarser.names)

    def to_json(self) -> dict[str, Any]:
        """Return the plain form, with the steps of the release."""
        steps = [step.to_json() for step in self.steps]
        return {"step": self.kind, **{name: getattr(self, name) for name in _NAMED}, "steps": steps}

    @classmethod
    def read(cls, plain: Mapping[str, Any], classes: Iterable[type[Step]]) -> Parent | None:  # noqa: ARG003
        """Read what `to_json` wrote; the steps that it holds are those of the parent's method."""
        if set(plain) != {"step", *_NAMED, "steps"}:
            return None
        if any(type(plain[name]) is not kind for name, kind in _NAMED.items()):
            return None
        steps = steps_of(plain["steps"], (*check_of(plain["method"]).steps, *AROUND))
        return cls(plain["method"], plain["id"], plain["digest"], steps)


_NAMED: Mapping[str, type] = {"method": str, "id": str, "digest": str}


@dataclass(frozen=True)
class CoarserColumn:
    """A column that is left: its level, and what each released label became, if it rose."""

    column: str
    level: int
    labels: tuple[tuple[str | None, str | None], ...] | None = None


@dataclass(frozen=True)
class Coarsen(Step):
    """The released table was made coarser, label by label."""

    kind: ClassVar[str] = "coarsen"
    title: ClassVar[str] = "Make coarser"

    columns: tuple[CoarserColumn, ...]

    @property
    def by(self) -> str:
        """What decides about a row."""
        return "released values"

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are left."""
        return tuple(column.column for column in self.columns)

    @property
    def sentence(self) -> str:
        """What happens, for people."""
        names = ", ".join(self.names)
        return f"The released table was made coarser, down to {names}. No row was read again, and nothing spent."


def inherited_claims(claims: Iterable[Claim], columns: tuple[str, ...]) -> tuple[Claim, ...]:
    """Return the claims that a coarser table inherits: guarantees of privacy, and those about the columns it has left.

    What is guaranteed about a mechanism holds for everything computed from its output; and a class of a coarser table
    is a union of classes, so it is no smaller.  A claim about accuracy would not survive.

    >>> claim = Anonymity(k=5, columns=("sex", "zip"), unit="one row", theorem="counted")
    >>> [claim.columns for claim in inherited_claims((claim,), ("zip",))]
    [('zip',)]
    """
    inherited: list[Claim] = []
    for claim in claims:
        if isinstance(claim, Anonymity | Pseudonymity):
            left = tuple(name for name in claim.columns if name in columns)
            inherited += [replace(claim, columns=left)] if left else []
        elif isinstance(claim, Private | SampledCrowd | Surveyed | Concentrated | Blending):
            inherited.append(claim)
    return tuple(inherited)
