"""What the two crowd-blending histograms share: bins, a secret sample, and a promise about counts below k."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from incrowd.core.guarantee import Guarantee
from incrowd.core.schema import Schema
from incrowd.core.unit import Unit
from incrowd.errors import InvalidParameter
from incrowd.methods.crowds import count_claims as claims
from incrowd.methods.crowds.count_claims import Small
from incrowd.methods.crowds.parameters import Parameters, Target
from incrowd.methods.crowds.safe_claims import assumptions
from incrowd.methods.crowds.small_counts import crowd_of, loss_of, solve
from incrowd.methods.histograms.partition import Partition

if TYPE_CHECKING:
    from incrowd.core.certificate import Claim

_PEOPLE = "group privacy over a person's rows, each with a coin of its own"


@dataclass(frozen=True, kw_only=True)
class CrowdHistogram(ABC):
    """Bins of which counts from k on are exact; with a target, of a secret sample."""

    columns: tuple[str, ...] = ()
    levels: Mapping[str, int] = field(default_factory=dict)
    target: Target | None = None
    rate: Fraction | None = None
    k: int | None = None
    round: int = 1

    def __post_init__(self) -> None:
        if self.k is not None and self.k < 1:
            raise InvalidParameter("a crowd needs k of at least 1.")
        if self.rate is not None and not 0 < self.rate <= 1:
            raise InvalidParameter("the rate lies above 0 and at most at 1; below 1 there is a secret sample.")
        if self.round < 1:
            raise InvalidParameter("counts are rounded to multiples of a whole number of at least 1.")
        if self.target is None and self.rate not in (None, 1):
            raise InvalidParameter("a secret sample needs target: {delta: …}, with epsilon or with both k and rate.")
        if self.unsampled and self.k is None:
            raise InvalidParameter(
                "without a secret sample, which is what target asks for, k must be given; then no epsilon is promised."
            )

    @property
    @abstractmethod
    def noise(self) -> Fraction | None:
        """The ε of the noise on counts below k; None where they are suppressed."""

    @property
    def unsampled(self) -> bool:
        """Whether every row is read: then crowds are exact, and there is no ε."""
        return self.rate == 1 or self.target is None

    def parameters(self, unit: Unit) -> Parameters:
        """Return k, rate, ε and δ for a unit, the missing one solved."""
        if self.target is None or self.unsampled:
            raise InvalidParameter("without a secret sample there is no epsilon: give a target and a rate below 1.")
        return solve(self.k, self.rate, self.target, unit, self.noise)

    def small(self, unit: Unit) -> Small:
        """Return what becomes of small counts, k solved where it must be."""
        return Small(self.k if self.k is not None else self.parameters(unit).k, self.noise)

    def smallest_class(self, schema: Schema) -> None:  # noqa: B027 - there is none
        """No rows are released."""

    def settings(self, schema: Schema) -> Mapping[str, Any]:
        """Return k, and where there is a sample the rate, ε and δ, the solved one named."""
        noise = {} if self.noise is None else {"noise": self.noise}
        if self.unsampled:
            return {"k": self.small(schema.unit).k, **noise}
        return asdict(self.parameters(schema.unit)) | noise

    def guarantee(self, schema: Schema) -> Guarantee:
        """Promise from the schema alone."""
        self.partition(schema)
        unit, small = schema.unit, self.small(schema.unit)
        if self.unsampled:
            if unit.max_rows > 1:
                raise InvalidParameter(
                    "without a secret sample crowds of rows say nothing about people with several rows: keep max_rows "
                    "at 1."
                )
            loss = crowd_of(small.k, small.noise)
            return Guarantee(loss, unit, small.source, assumptions(unit, sampled=False))
        found = self.parameters(unit)
        return Guarantee(
            loss_of(found.k, found.rate, unit, small.noise),
            unit,
            small.curve if unit.max_rows == 1 else f"{small.curve}; {_PEOPLE}",
            assumptions(unit, sampled=True),
            found.delta,
        )

    def claims(self, schema: Schema) -> tuple[Claim, ...]:
        """Return the claims in order of strength."""
        found = None if self.unsampled else self.parameters(schema.unit)
        return claims.crowd_claims(self.small(schema.unit), found, schema.unit)

    @abstractmethod
    def partition(self, schema: Schema) -> Partition:
        """Return the bins, or refuse those whose counts this method cannot protect."""

    def sampled_at(self, unit: Unit) -> Fraction | None:
        """Return the rate of the secret sample, or None where every row is read."""
        return None if self.unsampled else self.parameters(unit).rate
