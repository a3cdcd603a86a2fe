"""Parameters of calculators: numbers as they were stated, and which of them is to be solved for."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from incrowd.core.rounding import Number, exact
from incrowd.errors import InvalidParameter

_MOST_EPSILON = 10**6


def missing_one(given: Mapping[str, object]) -> str:
    """Return the name of the one parameter that is None; any other number of them is refused.

    >>> missing_one({"k": 20, "rate": "0.1", "epsilon": 1, "delta": None})
    'delta'
    """
    absent = [name for name, value in given.items() if value is None]
    if len(absent) == 1:
        return absent[0]
    names = ", ".join(list(given)[:-1]) + f" and {list(given)[-1]}"
    if not absent:
        raise InvalidParameter(f"all of {names} were given, so nothing is left to solve for: leave one out.")
    present = [name for name in given if name not in absent]
    known = f"only {' and '.join(present)} given" if present else "none given"
    raise InvalidParameter(
        f"{len(given) - 1} of {names} are needed to find the missing one; {known}. Give {len(absent) - 1} more of "
        f"{', '.join(absent)}."
    )


def stated_epsilon(number: Number, name: str = "epsilon") -> Fraction:
    """Return an ε: not negative, and not so large that it guarantees nothing.

    >>> stated_epsilon("0.5")
    Fraction(1, 2)
    """
    epsilon = exact(number, name)
    if epsilon < 0:
        raise InvalidParameter(f"{name} cannot be negative: 0 means that nothing can be told.")
    if epsilon > _MOST_EPSILON:
        raise InvalidParameter(f"{name} is above a million, which guarantees nothing: give a smaller one.")
    return epsilon
