"""Price: what the ledger asks to learn the cost of a promise."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

from incrowd.core.loss import Loss
from incrowd.core.unit import Adjacency

if TYPE_CHECKING:
    from incrowd.accounting.accountant import Spend


class Price(Protocol):
    """Reads a loss and says what it costs; knows neither data nor ledger."""

    def spend(self, loss: Loss, delta: Fraction, adjacency: Adjacency) -> Spend:
        """Return the (ε, δ) that a loss stated at `delta` takes from a budget."""

    def rho(self, loss: Loss, adjacency: Adjacency) -> Fraction | None:
        """Return the ρ that a loss takes from a zero-concentrated account, or None if it has none."""


@dataclass(frozen=True)
class Accountant:
    """The prices of the accountant in this package.

    >>> from incrowd.core.loss import Pure
    >>> Accountant().spend(Pure(Fraction(1)), Fraction(0), Adjacency.ADD_REMOVE).epsilon
    Decimal('1')
    """

    def spend(self, loss: Loss, delta: Fraction, adjacency: Adjacency) -> Spend:
        """Return the tightest (ε, δ) that is sound."""
        from incrowd.accounting.accountant import charge_of

        return charge_of(loss, delta, adjacency)

    def rho(self, loss: Loss, adjacency: Adjacency) -> Fraction | None:
        """Return a sound ρ, or None."""
        from incrowd.accounting.noise.concentrated import rho_of

        return rho_of(loss, adjacency)
