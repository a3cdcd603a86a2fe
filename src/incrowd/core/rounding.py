"""Rounding: parameters are exact, losses are rounded up, remaining budget is rounded down."""

from __future__ import annotations

import math
import re
import sys
from decimal import Decimal, InvalidOperation, localcontext
from fractions import Fraction

from incrowd.errors import InvalidParameter

Number = int | float | str | Decimal | Fraction

# An exponent of five digits, or text of a thousand characters: its fraction alone could fill the memory.
_TOO_LONG = re.compile(r"[eE][+-]?0*[1-9][0-9]{4}|.{1000}", re.DOTALL)
_PLACES = 40  # far below every δ a person writes, so that rounding a charge up costs nothing worth counting
_GRID = 10**_PLACES


def short(text: str) -> str:
    """Return the text of a number as it is, or refuse one whose fraction could fill the memory.

    >>> short("1/3")
    '1/3'
    >>> short("1e999999999")
    Traceback (most recent call last):
    incrowd.errors.InvalidParameter: the number has too many digits, or too large an exponent, to be computed with.
    """
    if _TOO_LONG.search(text):
        raise InvalidParameter("the number has too many digits, or too large an exponent, to be computed with.")
    return text


def exact(number: Number, name: str = "the number") -> Fraction:
    """Return the fraction a person wrote: a float means the decimal it is printed as.

    >>> exact(0.1)
    Fraction(1, 10)
    >>> exact("1e-8") == Fraction(1, 10**8)
    True
    >>> exact("1/3")
    Fraction(1, 3)
    >>> exact("1e999999999", "epsilon")
    Traceback (most recent call last):
    incrowd.errors.InvalidParameter: epsilon has too many digits, or too large an exponent, to be computed with.
    """
    if isinstance(number, bool):
        raise InvalidParameter(f"{name} must be a number, not true or false.")
    if isinstance(number, (int, Fraction)):
        return Fraction(number)
    if isinstance(number, str) and _TOO_LONG.search(number):
        raise InvalidParameter(f"{name} has too many digits, or too large an exponent, to be computed with.")
    try:
        value = Fraction(number if isinstance(number, (str, Decimal)) else repr(float(number)))
    except (ValueError, OverflowError, ZeroDivisionError, InvalidOperation, TypeError) as error:
        raise InvalidParameter(f"{name} must be a finite number such as 0.1, 1e-6 or 1/3.") from error
    return value


def round_up(number: Number) -> Decimal:
    """Return the least multiple of 10⁻⁴⁰ that is not below `number`; sums of such amounts are exact.

    >>> round_up("1e-50")
    Decimal('1E-40')
    >>> round_up(Fraction(1, 4))
    Decimal('0.25')
    """
    return _on_grid(math.ceil(_exact_value(number) * _GRID))


def round_down(number: Number) -> Decimal:
    """Return the greatest multiple of 10⁻⁴⁰ that is not above `number`: for what remains."""
    return _on_grid(math.floor(_exact_value(number) * _GRID))


def not_below(value: float, relative: float) -> float:
    """Return a float that is at least the true value, if `value` is within `relative` of it.

    >>> not_below(0.5, 1e-12) > 0.5
    True
    >>> not_below(0.0, 1e-12)
    0.0
    """
    return math.nextafter(value * (1.0 + relative), math.inf) if value > 0.0 else value


def float_up(number: Fraction) -> float:
    """Return the least float that is not below `number`.

    >>> Fraction(float_up(Fraction(1, 10))) >= Fraction(1, 10)
    True
    """
    near = float(number)
    return near if Fraction(near) >= number else math.nextafter(near, math.inf)


def float_down(number: Fraction) -> float:
    """Return the greatest float that is not above `number`."""
    return -float_up(-number)


def _exact_value(number: Number) -> Fraction:
    # A computed float is taken at its binary value: rounding it through its printed form could round down.
    if isinstance(number, float) and math.isfinite(number):
        return Fraction(number)
    return exact(number)


def _on_grid(steps: int) -> Decimal:
    with localcontext() as context:
        context.prec = max(1, len(str(abs(steps))))
        return Decimal(steps).scaleb(-_PLACES).normalize() if steps else Decimal(0)


def probability_up(logarithm: float) -> float:
    """Return the float at or above e^logarithm: at least the smallest positive one, at most 1.

    >>> probability_up(-1e6) > 0.0
    True
    """
    if logarithm >= 0.0:
        return 1.0
    power = math.exp(logarithm)  # right within one step of a float, which is more than 4 epsilons below 10⁻³⁰⁷
    return max(power * (1.0 + 4.0 * sys.float_info.epsilon), math.nextafter(power, 1.0))
