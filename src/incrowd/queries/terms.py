"""Terms: what an asker pays for an answer, or how exact it must be."""

from __future__ import annotations

from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

from incrowd.core.rounding import exact
from incrowd.errors import InvalidParameter


@dataclass(frozen=True)
class Terms:
    """Exactly one of ε, an error for which the least ε is solved, and ρ; δ where groups or the noise need one.

    `error` is the half-width of the 95 % interval that every count and sum of the answer must keep.  `rho` is paid from
    a zero-concentrated account.  `rate` puts a secret sample of the rows in front.

    >>> Terms(epsilon="0.5").epsilon
    Fraction(1, 2)
    """

    epsilon: Fraction | None = None
    delta: Fraction = Fraction(0)
    error: Fraction | None = None
    rate: Fraction | None = None
    rho: Fraction | None = None

    def __post_init__(self) -> None:
        for item in fields(self):
            given = getattr(self, item.name)
            object.__setattr__(self, item.name, None if given is None else exact(given, item.name))
        if sum(each is not None for each in (self.epsilon, self.error, self.rho)) != 1:
            raise InvalidParameter(
                "give one of epsilon, error and rho: what the answer costs, or how exact it must be."
            )
        for name in ("epsilon", "error", "rho"):
            if (value := getattr(self, name)) is not None and value <= 0:
                raise InvalidParameter(f"{name} must be above 0.")
        if not 0 <= self.delta < 1:
            raise InvalidParameter("delta lies in [0, 1), such as 1e-8; 0 means none.")
        if self.rate is not None and not 0 < self.rate < 1:
            raise InvalidParameter(
                "the rate of a secret sample lies strictly between 0 and 1; leave it out to read all."
            )

    def to_json(self) -> dict[str, Any]:
        """Return the plain form.

        >>> Terms(epsilon=1, delta="1e-6").to_json()
        {'epsilon': '1', 'delta': '1/1000000'}
        """
        return {item.name: str(value) for item in fields(self) if (value := getattr(self, item.name))}
