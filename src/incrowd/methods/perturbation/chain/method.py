"""Chain: several masks, one after the other; each reads what the one before left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from incrowd.errors import InvalidParameter
from incrowd.methods.perturbation.masks import Mask, plan_of

if TYPE_CHECKING:
    from incrowd.core.plan import Method, Plan
    from incrowd.core.schema import Schema


@dataclass(frozen=True)
class MaskChain:
    """Masks in order, as a list in the policy.

    Guarantee: that of the first mask that has one, if the ones before read each row by itself; else none to people.

    Assumes: what its masks assume.

    Source: what follows a private step reads its output alone, which takes nothing from its guarantee.
    """

    name: ClassVar[str] = "chain"

    masks: tuple[Method, ...]

    def __post_init__(self) -> None:
        strange = [mask.name for mask in self.masks if not isinstance(mask, Mask)]
        if strange:
            raise InvalidParameter(
                f"{strange[0]!r} cannot be one of several steps: only masks can, such as coding, noise, pram, "
                "rounding or shuffle. Of those, pram alone guarantees something to people, and what follows it reads "
                f"what it left. Write a policy of its own for {strange[0]!r}."
            )
        if not self.masks:
            raise InvalidParameter("a list of steps needs at least one.")

    def plan(self, schema: Schema) -> Plan:
        """Guarantee what the steps guarantee together, from the schema alone."""
        return plan_of(self.name, [mask for mask in self.masks if isinstance(mask, Mask)], schema)
