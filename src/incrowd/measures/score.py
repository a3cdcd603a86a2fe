"""Score: a number that was read off a release, what it means, and how sure it is; a score guarantees nothing."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from incrowd.errors import InvalidParameter

CONFIDENCE = 0.95
"""How often the interval of an estimate holds what is estimated, unless a score says otherwise."""
_Z = 1.959963984540054  # of that confidence, both sides


@dataclass(frozen=True)
class Score:
    """A number with its definition; an estimate has an interval, and says of what kind; an exact number has none.

    >>> share("unique", 3, 40, "rows that are alone").value
    0.075
    >>> Score("classes", 12, "different tuples").exact
    True
    """

    name: str
    value: float
    means: str
    low: float | None = None
    high: float | None = None
    interval: str = ""

    def __post_init__(self) -> None:
        ends = (self.low, self.high)
        if (self.low is None) != (self.high is None):
            raise InvalidParameter("an interval has two ends, or there is none.")
        if self.low is not None and self.high is not None and not self.low <= self.value <= self.high:
            raise InvalidParameter(f"the score {self.value} lies outside of its interval {ends}.")

    @property
    def exact(self) -> bool:
        """Whether it was counted, and nothing estimated."""
        return self.low is None

    def to_json(self) -> dict[str, Any]:
        """Return the plain form; an exact number has no interval."""
        plain = asdict(self)
        if self.exact:
            for key in ("low", "high", "interval"):
                del plain[key]
        return plain


def share(name: str, successes: float, trials: int, means: str) -> Score:
    """Return a share of independent trials with Wilson's interval.

    Source: Wilson 1927.

    >>> one = share("right", 8, 10, "guesses that were right")
    >>> round(one.low, 3), round(one.high, 3)
    (0.49, 0.943)
    """
    if trials < 1:
        raise InvalidParameter("a share needs at least one trial.")
    p, z2 = successes / trials, _Z * _Z
    middle = (p + z2 / (2 * trials)) / (1 + z2 / trials)
    reach = _Z * math.sqrt(p * (1 - p) / trials + z2 / (4 * trials * trials)) / (1 + z2 / trials)
    low, high = max(0.0, middle - reach), min(1.0, middle + reach)
    return Score(name, p, means, min(low, p), max(high, p), "Wilson, 95 %")


def around(name: str, value: float, error: float, means: str) -> Score:
    """Return an estimate with a normal interval around it, cut off at 0, from its standard error.

    >>> round(around("found", 10.0, 1.0, "rows").high, 6)
    11.959964
    """
    return Score(name, value, means, min(value, max(0.0, value - _Z * error)), value + _Z * error, "normal, 95 %")
