"""Parameters of calculators: stated numbers, and which one to solve for."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from incrowd.core.rounding import Number, exact
from incrowd.errors import InvalidParameter

_MOST_EPSILON = 10**6  # a larger one protects nobody: a typing error


def missing_one(parameters: Mapping[str, object]) -> str:
    """Return the name of the one parameter that is None; any other number of them is refused.

    >>> missing_one({"k": 20, "rate": "0.1", "epsilon": 1, "delta": None})
    'delta'
    """
    absent = [name for name, value in parameters.items() if value is None]
    if len(absent) == 1:
        return absent[0]
    names = ", ".join(list(parameters)[:-1]) + f" and {list(parameters)[-1]}"
    if not absent:
        raise InvalidParameter(f"all of {names} were given, so there is nothing to solve for: omit one.")
    present = [name for name in parameters if name not in absent]
    state = f"only {' and '.join(present)} given" if present else "none given"
    raise InvalidParameter(
        f"{len(parameters) - 1} of {names} are needed to find the missing one; {state}. Give {len(absent) - 1} more of "
        f"{', '.join(absent)}."
    )


def stated_epsilon(number: Number, name: str = "epsilon") -> Fraction:
    """Return an ε: not negative, and not so large that it has no meaning.

    >>> stated_epsilon("0.5")
    Fraction(1, 2)
    """
    epsilon = exact(number, name)
    if epsilon < 0:
        raise InvalidParameter(f"{name} must not be negative; at 0 nothing is disclosed.")
    if epsilon > _MOST_EPSILON:
        raise InvalidParameter(f"{name} is above a million, which is not a guarantee: give a smaller one.")
    return epsilon
