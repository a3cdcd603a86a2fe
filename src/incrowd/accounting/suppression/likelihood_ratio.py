"""e to the epsilon: at once as a float, and with as many digits as are asked for."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction

from incrowd.errors import InvalidParameter

_BEYOND_FLOATS = 709
_ENOUGH = 40  # digits that leave a float's worth after one is subtracted


@dataclass(frozen=True)
class LikelihoodRatio:
    """The bound e^epsilon (1 - discount) on how much likelier one dataset may make an outcome than another.

    `less_one` is the ratio minus one, infinite if it is beyond every float. Where differences such as
    1 - (1 - rate) e^epsilon would lose the digits of a float, `decimal` has more.

    >>> LikelihoodRatio(Fraction(1, 2)).less_one == math.expm1(0.5)
    True
    """

    epsilon: Fraction
    discount: Fraction = Fraction(0)
    less_one: float = field(init=False)

    def __post_init__(self) -> None:
        if self.epsilon.numerator < 0:
            raise InvalidParameter("epsilon must be 0 or more: it bounds the loss of privacy from above.")
        object.__setattr__(self, "less_one", self._less_one())

    def decimal(self, digits: int) -> Decimal:
        """Return the ratio to so many digits.

        >>> LikelihoodRatio(Fraction(1)).decimal(8)
        Decimal('2.7182818')
        """
        context = Context(prec=digits, Emax=MAX_EMAX, Emin=MIN_EMIN)
        power = context.exp(context.divide(Decimal(self.epsilon.numerator), Decimal(self.epsilon.denominator)))
        if not self.discount:
            return power
        kept = 1 - self.discount
        return context.divide(context.multiply(power, Decimal(kept.numerator)), Decimal(kept.denominator))

    def _less_one(self) -> float:
        if not self.discount:
            return math.expm1(self.epsilon) if self.epsilon <= _BEYOND_FLOATS else math.inf
        kept = 1 - self.discount
        if self.epsilon > _BEYOND_FLOATS + math.log(kept.denominator) - math.log(kept.numerator):
            return math.inf
        return float(self.decimal(_ENOUGH) - 1)
