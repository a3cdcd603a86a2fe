"""Statement: what a certificate says about its release, without who made it and what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from incrowd.core.claims.claim import Claim
from incrowd.core.steps.step import ClaimBasis, Step

if TYPE_CHECKING:
    from incrowd.core.schema import Role
    from incrowd.core.steps.periods import ReadPeriod


@dataclass(frozen=True)
class Statement:
    """What is said about a release: the basis of its claims, the claims, the released columns, and the evidence.

    `roles` and `types` are those of the declared columns.  `period` is the one whose rows were read, if it was one.
    """

    basis: ClaimBasis
    claims: tuple[Claim, ...]
    released: tuple[str, ...]
    evidence: Mapping[str, Any] = field(default_factory=dict)
    roles: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    period: ReadPeriod | None = None
    cliques: tuple[tuple[str, ...], ...] = ()
    """The columns of the tables of an earlier model that the release started from."""

    @property
    def steps(self) -> tuple[Step, ...]:
        """What happened to the rows."""
        return self.basis.steps

    def of_role(self, role: Role) -> tuple[str, ...]:
        """Return the released columns that count as a role, in order."""
        return tuple(name for name in self.released if role.covers(self.roles.get(name)))
