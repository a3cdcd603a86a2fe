"""Standing: what the owner of a dataset allowed, what was spent of it, and what is left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from incrowd.accounting.budget import Amount, Budget
from incrowd.core.unit import Unit

INFINITY = Decimal("Infinity")


@dataclass(frozen=True)
class Terms:
    """What holds for a dataset: its unit of privacy, the budget its policy declared, the budget as granted since."""

    unit: Unit
    declared: Budget | None = None
    budget: Budget | None = None  # None until the first release, whose charge then is the whole budget
    closed: str | None = None  # "closed" or "retired"

    def to_json(self) -> dict[str, Any]:
        """Return the plain form stored in ledgers."""
        return {
            "unit": self.unit.to_json(),
            "declared": self.declared and self.declared.to_json(),
            "budget": self.budget and self.budget.to_json(),
            "closed": self.closed,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Terms:
        """Read what `to_json` wrote."""
        declared, budget = (stored[name] and Budget.from_json(stored[name]) for name in ("declared", "budget"))
        return cls(Unit.from_json(stored["unit"]), declared, budget, stored["closed"])


@dataclass(frozen=True)
class Totals:
    """What was released of a dataset so far.

    `spent` sums every finite charge; `everyone` those that were no single analyst's; `most` is the largest sum of any
    one analyst, ε and δ each for itself.  Releases without an ε are counted in `unbounded`; those among them that are
    crowd-blending also in `crowds`.
    """

    spent: Amount = field(default_factory=Amount)
    everyone: Amount = field(default_factory=Amount)
    most: Amount = field(default_factory=Amount)
    charges: int = 0
    unbounded: int = 0
    crowds: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the plain form stored in ledgers."""
        amounts = {name: getattr(self, name).to_json() for name in ("spent", "everyone", "most")}
        return {**amounts, "charges": self.charges, "unbounded": self.unbounded, "crowds": self.crowds}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Totals:
        """Read what `to_json` wrote."""
        spent, everyone, most = (Amount.from_json(stored[name]) for name in ("spent", "everyone", "most"))
        return cls(spent, everyone, most, stored["charges"], stored["unbounded"], stored["crowds"])


@dataclass(frozen=True)
class Standing:
    """Terms and totals of a dataset at one moment.

    >>> terms = Terms(Unit(), budget=Budget.of(3, "1e-7"))
    >>> Standing("births", terms, Totals(spent=Amount.up(1, 0))).left
    Amount(epsilon=Decimal('2'), delta=Decimal('1E-7'))
    """

    dataset: str
    terms: Terms
    totals: Totals

    @property
    def epsilon(self) -> Decimal:
        """The ε of everything released so far: infinite as soon as one release had none."""
        return INFINITY if self.totals.unbounded else self.totals.spent.epsilon

    @property
    def delta(self) -> Decimal:
        """The δ of everything released so far."""
        return self.totals.spent.delta

    @property
    def left(self) -> Amount | None:
        """What may still be released to everyone; None while no budget is set."""
        if self.terms.budget is None:
            return None
        separate = self.terms.budget.separate_analysts is not None
        used = self.totals.everyone.plus(self.totals.most) if separate else self.totals.spent
        return self.terms.budget.limit.minus(used)

    def to_json(self) -> dict[str, Any]:
        """Return the plain form that certificates and `--json` show."""
        left = self.left
        return {
            "dataset": self.dataset,
            **self.terms.to_json(),
            **self.totals.to_json(),
            "epsilon": "Infinity" if self.totals.unbounded else self.totals.spent.to_json()["epsilon"],
            "delta": self.totals.spent.to_json()["delta"],
            "left": left and left.to_json(),
        }
