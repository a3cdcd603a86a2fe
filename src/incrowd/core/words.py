"""Words: numbers in words, rounded so that no sentence guarantees more than its number."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from incrowd.core.rounding import Number, exact

_LARGE = Decimal(10**6)
_MOST_DIGITS = 6
_CERTAIN = Fraction(1000)  # an ε: e^1000 = 10⁴³⁴, and no reader needs more
_SIZES = ((10**12, "trillion"), (10**9, "billion"), (10**6, "million"))
_PRECISE = Context(prec=50)
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def chance(probability: Number) -> str:
    """Return how often something happens at most, as "1 in N"; never below the true probability.

    >>> chance("1e-8"), chance("3e-5"), chance(0)
    ('at most 1 in 100 million', 'at most 1 in 33,333', 'none')
    >>> chance("0.7"), chance("6e-7"), chance("1e-40")
    ('up to 70 %', 'at most 1 in 1.6 million', 'at most 1 in 10⁴⁰')
    """
    value = exact(probability, "the probability")
    if value <= 0:
        return "none"
    if value >= Fraction(1, 2):
        return f"up to {percent_up(min(value, Fraction(1)))}"
    of = math.floor(1 / value)
    if of >= _SIZES[0][0] * 1000:
        return f"at most 1 in 10{str(len(str(of)) - 1).translate(_RAISED)}"
    for size, word in _SIZES:
        if of >= size:
            tenths = of * 10 // size
            return f"at most 1 in {tenths / 10:g} {word}" if tenths < 100 else f"at most 1 in {of // size} {word}"
    return f"at most 1 in {of:,}"


def share(rate: Number, noun: str = "row") -> str:
    """Return a rate as a share of things; never smaller than it is.

    >>> share("1/10"), share("0.03"), share("0.7"), share("0.97"), share(1)
    ('1 row in 10', 'about 1 row in 33', '7 rows in 10', '97 rows in 100', 'every row')
    """
    value = exact(rate, "the rate")
    if value >= 1:
        return f"every {noun}"
    if value <= 0:
        return f"no {noun}"
    if value <= Fraction(1, 3):
        of = math.floor(1 / value)
        text, stated = f"1 {noun} in {of:,}", Fraction(1, of)
    else:
        hundredths = math.ceil(value * 100)
        top, bottom = (hundredths // 10, 10) if hundredths % 10 == 0 else (hundredths, 100)
        text, stated = f"{top} {noun}s in {bottom}", Fraction(top, bottom)
    return text if stated == value else f"about {text}"


def percent_up(probability: float | Fraction) -> str:
    """Return a probability in percent, rounded up, with enough digits to distinguish a high one from 100 %.

    >>> percent_up(0.7310585), percent_up(0.5), percent_up(0.99966), percent_up(1.0)
    ('73.2 %', '50 %', '99.97 %', '100 %')
    """
    exactly = Fraction(probability) * 100
    for digits in range(1, _MOST_DIGITS):
        steps = math.ceil(exactly * 10**digits)
        if steps < 100 * 10**digits or exactly >= 100:
            return f"{steps / 10**digits:.{digits}f}".rstrip("0").rstrip(".") + " %"
    return "100 %"


def times_up(epsilon: Number | Decimal) -> str:
    """Return e^ε, the factor by which one unit may change the odds, rounded up to three digits.

    >>> times_up(1), times_up(0), times_up(10), times_up(30)
    ('2.72', '1', '22,100', '10¹⁴')
    """
    exactly = exact(epsilon, "epsilon")
    if exactly > _CERTAIN:
        return "more than 10⁴³⁴"
    factor = _PRECISE.exp(_PRECISE.divide(Decimal(exactly.numerator), Decimal(exactly.denominator)))
    rounded = Context(prec=3, rounding=ROUND_CEILING).plus(factor)
    if rounded >= _LARGE:
        power = rounded.adjusted() + (rounded > Decimal(10) ** rounded.adjusted())
        return f"10{str(power).translate(_RAISED)}"
    return _plain(rounded)


def short_up(amount: Decimal, digits: int = 4) -> str:
    """Return a short text that is not below the amount: for what is guaranteed or spent.

    >>> short_up(Decimal("0.97123456")), short_up(Decimal("1E-8")), short_up(Decimal("Infinity"))
    ('0.9713', '1e-8', 'no bound')
    """
    return _short(amount, Context(prec=digits, rounding=ROUND_CEILING))


def short_down(amount: Decimal, digits: int = 4) -> str:
    """Return a short text that is not above the amount: for what remains.

    >>> short_down(Decimal("0.97128")), short_down(Decimal("1234.56")), short_down(Decimal(0))
    ('0.9712', '1234', '0')
    """
    return _short(amount, Context(prec=digits, rounding=ROUND_FLOOR))


def counted(number: int, noun: str) -> str:
    """Return a number of things.

    >>> counted(1, "row"), counted(12345, "row"), counted(2, "class"), counted(2, "query"), counted(2, "key")
    ('1 row', '12,345 rows', '2 classes', '2 queries', '2 keys')
    """
    return f"{number:,} {noun if number == 1 else _plural(noun)}"


def _plural(noun: str) -> str:
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith("s") else f"{noun}s"


def listed(words: list[str]) -> str:
    """Return words as an English list.

    >>> listed(["k-anonymity"]), listed(["a", "b", "c"])
    ('k-anonymity', 'a, b and c')
    """
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + f" and {words[-1]}" if words else ""


def _short(amount: Decimal, context: Context) -> str:
    if not amount.is_finite():
        return "no bound"
    rounded = context.plus(amount)
    if rounded and not -5 < rounded.adjusted() < 9:
        return format(rounded.normalize(), "e").replace("e+", "e")
    return _plain(rounded).replace(",", "")  # it can be pasted where an amount is asked for


def _plain(number: Decimal) -> str:
    text = format(number, ",f")
    return text.rstrip("0").rstrip(".") if "." in text else text
