"""Method: a mechanism that releases a table, and can say in words and numbers what it did."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    from incrowd.core.certificate import Claim
    from incrowd.core.coins import Coins
    from incrowd.core.guarantee import Guarantee
    from incrowd.core.schema import Schema
    from incrowd.core.table import Table
    from incrowd.methods.outcomes.outcome import Outcome


class Method(Protocol):
    """What a method adds to a mechanism: a name in policies, claims for the certificate, and its steps in order."""

    name: ClassVar[str]

    def guarantee(self, schema: Schema) -> Guarantee:
        """Promise, with the data unplugged."""

    def claims(self, schema: Schema) -> tuple[Claim, ...]:
        """Return every claim the promise implies, the strongest first, each with its theorem and its limits."""

    def chain(self, schema: Schema) -> tuple[Mapping[str, Any], ...]:
        """Return the mechanism's steps in order, complete enough to repeat them."""

    def settings(self, schema: Schema) -> Mapping[str, Any]:
        """Return every number that the promise hangs on, those that were solved included; `solved` names them."""

    def smallest_class(self, schema: Schema) -> int | None:
        """Return the k below which no class of released rows may be; None where no rows are released."""

    def release(self, table: Table, coins: Coins) -> Outcome:
        """Read the rows and release what was promised."""
