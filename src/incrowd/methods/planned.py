"""Planned: what a plan says, asked for one part at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from incrowd.core.certificate import Claim
from incrowd.core.certificate import Precondition as Condition
from incrowd.core.certificate import Status as How

if TYPE_CHECKING:
    from incrowd.core.guarantee import Guarantee
    from incrowd.core.plan import Plan
    from incrowd.core.schema import Schema


class Planned(ABC):
    """A method that makes a plan; its promise, claims and steps are parts of that."""

    @abstractmethod
    def plan(self, schema: Schema) -> Plan:
        """Say what would be done, from the schema alone."""

    def guarantee(self, schema: Schema) -> Guarantee:
        """Promise, with the data unplugged."""
        return self.plan(schema).promise

    def claims(self, schema: Schema) -> tuple[Claim, ...]:
        """Return every claim the promise implies, the strongest first."""
        return tuple(
            Claim(
                each.kind,
                each.parameters,
                each.unit,
                each.theorem,
                tuple(Condition(need.text, How(need.status)) for need in each.preconditions),
                each.not_protected,
            )
            for each in self.plan(schema).claims
        )

    def chain(self, schema: Schema) -> tuple[Mapping[str, Any], ...]:
        """Return the mechanism's steps in order."""
        return tuple(step.to_json() for step in self.plan(schema).steps)

    def settings(self, schema: Schema) -> Mapping[str, Any]:
        """Return every number that the promise hangs on."""
        return self.plan(schema).settings

    def smallest_class(self, schema: Schema) -> int | None:
        """Return the k below which no class of released rows may be."""
        return self.plan(schema).smallest_class
