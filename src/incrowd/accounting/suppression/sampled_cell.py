"""One cell of a sampled, suppressed table: how far a single record can move what is published of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction

from incrowd.accounting.suppression.binomial import log_lower_tail, log_lower_tail_bound, log_mass, tail_sums
from incrowd.errors import InvalidParameter

_BEYOND_FLOATS = 709  # e^709 is the last whole power that is a float
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
        undiscounted = 1 - self.discount
        return context.divide(
            context.multiply(power, Decimal(undiscounted.numerator)), Decimal(undiscounted.denominator)
        )

    def _less_one(self) -> float:
        if not self.discount:
            return math.expm1(self.epsilon) if self.epsilon <= _BEYOND_FLOATS else math.inf
        undiscounted = 1 - self.discount
        if self.epsilon > _BEYOND_FLOATS + math.log(undiscounted.denominator) - math.log(undiscounted.numerator):
            return math.inf
        return float(self.decimal(_ENOUGH) - 1)


_ROUNDING = 2.0**-47  # sixty-four roundings of a float, per unit of k and of the logarithm
_TIE = 2.0**-40  # a quotient this close to a whole number is settled with more digits
_DIGITS = 32  # twice those of a float: one subtraction cancels at most half of them, up to `_CLOSEST`
_LEAST_RATE = 1e-300  # its square root and its odds are still ordinary floats
_CLOSEST = Decimal("1e-4")  # of the rate: how close to 1 / (1 - rate) the ratio of an addition may come


@dataclass(frozen=True)
class SampledCell:
    """A count of a Poisson sample with the given rate, published from k on and as "few" below.

    Write P(n) for the law of what is published of a cell of n records, H for the excess of one law over
    `ratio` times another (the hockey-stick divergence). `log_remove` is the supremum over all n of
    H(P(n), P(n - 1)), `log_add` that of H(P(n - 1), P(n)). Cells are independent and a record lies in one
    cell, so both hold for whole tables; both are attained, so neither can be improved.

    Source: the mechanism is that of Li, Qardaji and Su 2010; the closed forms are proved here. Let f, F, T
    be the binomial mass, lower and upper tail, b the rate, a >= 1 the ratio.

    *Remove.* "few" never gains, and a count j >= k gains iff j > g n, where g = 1 - (1 - b) / a.
    (1) While g n <= k the excess is h(n) = T(n, k) - a T(n - 1, k), and h(n + 1) > h(n) iff g n < k - 1.
    (2) Once g n >= k - 1, suppression hides no count that gains, so the excess is that of the bare binomials,
    and adding one more Bernoulli to both is post-processing: it cannot rise with n. Both (1) and (2) hold at
    the worst size ceil((k - 1) / g), or 1 if k = 1.

    *Add.* Let g' = 1 - (1 - b) a. If g' <= 0 nothing gains. Else a count gains iff j < g' n; while
    g' n <= k - 1 only "few" can gain, by h'(n) = F(k - 1; n - 1) - a F(k - 1; n), which rises while
    g' n < k - 1; from there on every suppressed count gains, so again the excess is that of the bare
    binomials and cannot rise. The worst size is ceil((k - 1) / g'), or 1 if k = 1.

    If the population is known to have at most N records, and N is below the worst size, N is the worst.

    >>> cell = SampledCell(3, Fraction(1, 4))
    >>> round(math.exp(cell.log_remove(LikelihoodRatio(Fraction(0)))), 6)
    0.077866
    """

    k: int
    rate: Fraction
    p: float = field(init=False)
    q: float = field(init=False)

    def __post_init__(self) -> None:
        if type(self.k) is not int or self.k < 1:
            raise InvalidParameter("k must be a whole number, 1 or more: the least count that is published.")
        sampled, of = self.rate.numerator, self.rate.denominator
        if not 0 < sampled < of:
            raise InvalidParameter(_why_not_a_rate(self.rate))
        object.__setattr__(self, "p", sampled / of)
        object.__setattr__(self, "q", (of - sampled) / of)
        if min(self.p, self.q) < _LEAST_RATE:
            raise InvalidParameter("the sampling rate is closer to 0 or 1 than can be computed with.")

    def log_floor(self) -> float:
        """Return k ln(rate), rounded up: at any epsilon a record is revealed when k in a cell of k are sampled."""
        return self.rounded_up(self.k * (math.log(self.p) if self.p < 0.5 else math.log1p(-self.q)))

    def rounded_up(self, logarithm: float) -> float:
        """Return a logarithm raised by more than rounding can have taken from it."""
        return logarithm + _ROUNDING * (self.k - logarithm) if logarithm > -math.inf else logarithm

    def log_worst(self, ratio: LikelihoodRatio, population: int | None = None) -> float:
        """Return the larger of `log_remove` and `log_add`."""
        removed = self.log_remove(ratio, population)
        if population is None and self._log_add_bound(ratio) < removed:
            return removed
        return max(removed, self.log_add(ratio, population))

    def worst_size_remove(self, ratio: LikelihoodRatio) -> int:
        """Return the size of a cell from which removing one record shows most."""
        return self._remove_shape(ratio)[0]

    def worst_size_add(self, ratio: LikelihoodRatio) -> int | None:
        """Return the size of a cell in which the last record's coming shows most; None if it never shows."""
        shape = self._add_shape(ratio)
        return shape[0] if shape else None

    def log_remove(self, ratio: LikelihoodRatio, population: int | None = None) -> float:
        """Return the logarithm of the greatest excess of P(n) over `ratio` times P(n - 1), rounded up."""
        n, first = self._remove_shape(ratio)
        if population is not None and population < n:
            n, first = population, self._remove_weight(ratio.less_one, population)
        if n <= self.k:
            return -math.inf if n < self.k else self.log_floor()
        tail, excess = tail_sums(self.k, n, self.p / self.q)
        weight = (first * tail + (1.0 + ratio.less_one) * excess) / (n * self.q)
        return self.rounded_up(log_mass(self.k, n, self.p, self.q) + math.log(weight))

    def log_add(self, ratio: LikelihoodRatio, population: int | None = None) -> float:
        """Return the logarithm of the greatest excess of P(n - 1) over `ratio` times P(n), rounded up.

        It is minus infinity from the ratio 1 / (1 - rate) on; within a ten-thousandth of that limit the
        value a little before it, which is larger, stands in.
        """
        shape = self._add_shape(ratio)
        if shape is None:
            return -math.inf
        n, first = shape
        if population is not None and population < n:
            return self._log_add_small(ratio, population)
        tail, excess = tail_sums(n - self.k + 1, n, self.q / self.p)
        weight = (first * tail + excess) / (n * self.q)
        return self.rounded_up(log_mass(self.k - 1, n, self.p, self.q) + math.log(weight))

    def _remove_shape(self, ratio: LikelihoodRatio) -> tuple[int, float]:
        # The worst size n, and the weight of the count k times n (1 - rate).
        above = ratio.less_one
        if above >= 2.0 * self.k:
            return self.k, self.k * self.q
        size = (self.k - 1) * (1.0 + above) / (above + self.p)
        if abs(size - round(size)) < _TIE * size:
            return self._precise_remove_shape(ratio)
        n = max(1, math.ceil(size))
        return n, self._remove_weight(above, n)

    def _remove_weight(self, above: float, n: int) -> float:
        # n (1 - rate) - ratio (n - k), written so that no intermediate result is much larger than k.
        if self.q < self.p:
            return n * self.q - (1.0 + above) * (n - self.k)
        return (self.k - n * self.p) - above * (n - self.k)

    def _precise_remove_shape(self, ratio: LikelihoodRatio) -> tuple[int, float]:
        context, kept_out, bound = self._precisely(ratio)
        n = _size(context, self.k, context.subtract(Decimal(1), context.divide(kept_out, bound)))
        weight = context.multiply(Decimal(n), kept_out) - context.multiply(bound, Decimal(n - self.k))
        return n, float(weight)

    def _add_shape(self, ratio: LikelihoodRatio) -> tuple[int, float] | None:
        # The worst size n, and the weight of the count k - 1 times n (1 - rate); None if nothing gains.
        above = ratio.less_one
        gain = self.p - self.q * above
        if gain <= -_TIE * self.p:
            return None
        size = (self.k - 1) / gain if gain > 0.0 else 0.0
        if (1.0 + above) * self.p**2 > 8.0 * gain**2 or abs(size - round(size)) < _TIE * size:
            return self._precise_add_shape(ratio)
        n = max(1, math.ceil(size))
        if self.q < self.p:
            return n, (n - self.k + 1) - n * self.q * (1.0 + above)
        return n, (n * self.p - (self.k - 1)) - n * self.q * above

    def _precise_add_shape(self, ratio: LikelihoodRatio) -> tuple[int, float] | None:
        context, kept_out, bound = self._precisely(ratio)
        gain = context.subtract(Decimal(1), context.multiply(kept_out, bound))
        if gain <= 0:
            return None
        gain = max(gain, context.multiply(context.subtract(Decimal(1), kept_out), _CLOSEST))
        n = _size(context, self.k, gain)
        return n, float(context.multiply(gain, Decimal(n)) - (self.k - 1))

    def _log_add_bound(self, ratio: LikelihoodRatio) -> float:
        # No excess is larger than P(n - 1) of all that gains, here F(k - 1; n - 1); a smaller n gives more.
        gain = max(self.p - self.q * ratio.less_one, 1e-6 * self.p)
        size = int((self.k - 1) / gain * (1.0 - 1e-9))
        return log_lower_tail_bound(self.k - 1, size - 1, self.p, self.q) if size > 0 else 0.0

    def _precisely(self, ratio: LikelihoodRatio) -> tuple[Context, Decimal, Decimal]:
        digits = _DIGITS + max(0, math.ceil(-2.0 * math.log10(self.p)))
        context = Context(prec=digits, Emax=MAX_EMAX, Emin=MIN_EMIN)
        kept_out = 1 - self.rate
        return (
            context,
            context.divide(Decimal(kept_out.numerator), Decimal(kept_out.denominator)),
            ratio.decimal(digits),
        )

    def _log_add_small(self, ratio: LikelihoodRatio, n: int) -> float:
        # rate f(k-1; n-1) - (ratio - 1) F(k-1; n): what cancels is made up for by a margin.
        gained = math.log(self.p) + log_mass(self.k - 1, n - 1, self.p, self.q)
        if gained == -math.inf or ratio.less_one <= 0.0:
            return self.rounded_up(gained)
        lost = math.exp(math.log(ratio.less_one) + log_lower_tail(self.k - 1, n, self.p, self.q) - gained)
        left = 1.0 - lost + _ROUNDING * (self.k - gained) * (1.0 + lost)
        return gained + math.log(left) if left > 0.0 else -math.inf


def _size(context: Context, k: int, gain: Decimal) -> int:
    return max(1, math.ceil(context.divide(Decimal(k - 1), gain)))


def _why_not_a_rate(rate: Fraction) -> str:
    if rate == 1:
        return (
            "the sampling rate is 1, and without sampling there is no differential privacy here, whatever k is. "
            "Choose a rate below 1, or claim k-anonymity only."
        )
    return "the sampling rate must lie strictly between 0 and 1, such as 0.1."
