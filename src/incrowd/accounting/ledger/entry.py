"""Entry: what the ledger wrote down, and where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from incrowd.accounting.ledger.standing import Standing
from incrowd.core.guarantee import Guarantee
from incrowd.store.link import Anchor, Link


@dataclass(frozen=True)
class Charged:
    """What one dataset paid for a release: an (ε, δ) of its budget, or a ρ of an account carved out of it before."""

    dataset: str
    promise: Guarantee
    epsilon: Decimal
    delta: Decimal
    rule: str
    account: str | None = None
    rho: Decimal | None = None

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Charged:
        """Read a part of a stored charge."""
        rho = stored["rho"]
        return cls(
            stored["dataset"],
            Guarantee.from_json(stored["promise"]),
            Decimal(stored["epsilon"]),
            Decimal(stored["delta"]),
            stored["rule"],
            stored["account"],
            None if rho is None else Decimal(rho),
        )


@dataclass(frozen=True)
class Entry:
    """One entry of the ledger; `standings` tells how its datasets stood right after it, if it was just written."""

    anchor: Anchor
    at: str
    kind: str
    body: Mapping[str, Any]
    standings: tuple[Standing, ...] = ()

    @classmethod
    def of(cls, link: Link, standings: tuple[Standing, ...] = ()) -> Entry:
        """Return the entry that a link of the chain holds."""
        return cls(link.anchor, link.at, link.kind, link.body, standings)

    @property
    def sequence(self) -> int:
        """The number of the entry, counted from 1."""
        return self.anchor.sequence

    @property
    def charged(self) -> tuple[Charged, ...]:
        """What each dataset paid, if this is a charge."""
        return tuple(Charged.from_json(part) for part in self.body["parts"]) if self.kind == "charge" else ()
