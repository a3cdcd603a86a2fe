"""Chain: several masks one after the other; each reads what the one before left."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import ClassVar

from incrowd.core.claims.claim import Claim
from incrowd.core.plan import Method, Plan
from incrowd.core.schema import Schema
from incrowd.core.statement import Statement
from incrowd.errors import InvalidParameter
from incrowd.methods import METHODS
from incrowd.methods.perturbation.shared.masks import Mask, plan_of
from incrowd.methods.perturbation.shared.output import MaskCheck, MaskedRows, MaskPicture
from incrowd.methods.perturbation.shared.steps import Masking
from incrowd.verifier.check import CheckOutcome, Problem


@dataclass(frozen=True)
class MaskChain(Method):
    """Masks in order, as a list in the policy.

    Guarantee: that of the first mask that has one, if the ones before read each row by itself; else none to people.

    Assumes: what its masks assume.

    Source: what follows a private step reads its output alone, which takes nothing from its guarantee.
    """

    name: ClassVar[str] = "chain"

    masks: tuple[Method, ...]

    def __post_init__(self) -> None:
        others = [mask.name for mask in self.masks if not isinstance(mask, Mask)]
        if others:
            raise InvalidParameter(
                f"{others[0]!r} cannot be one of several steps: only masks can, such as coding, noise, pram, "
                "rounding or shuffle. Of those, pram alone guarantees something to people, and what follows it reads "
                f"what it left. Write a policy of its own for {others[0]!r}."
            )
        if not self.masks:
            raise InvalidParameter("a list of steps needs at least one.")

    def plan(self, schema: Schema) -> Plan:
        return plan_of(self.name, [mask for mask in self.masks if isinstance(mask, Mask)], schema)


class ChainCheck(MaskCheck):
    """How chains are judged: each step and each claim by the check of a mask that can have it."""

    def __init__(self, *checks: MaskCheck) -> None:
        steps = dict.fromkeys(step for check in checks for step in check.steps if issubclass(step, Masking))
        claims = dict.fromkeys(claim for check in checks for claim in check.claims)
        super().__init__(*steps, claims=tuple(claims), repeated=True)
        self.checks = checks

    def step_contradiction(self, step: Masking, statement: Statement) -> Problem | None:
        check = next(check for check in self.checks if type(step) in check.steps)
        return check.step_contradiction(step, statement)

    def claim_outcomes(self, claim: Claim, rows: MaskedRows) -> Iterator[CheckOutcome]:
        check = next(check for check in self.checks if type(claim) in check.claims)
        return check.claim_outcomes(claim, rows)


_MASKS = [place for place in METHODS.values() if place.startswith(f"{__package__}.")]

CHECK = ChainCheck(*(import_module(place).CHECK for place in _MASKS))
PICTURE = MaskPicture()
METHOD = MaskChain
