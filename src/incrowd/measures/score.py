"""Score: a number measured on a release, its definition and its confidence interval; a score guarantees nothing."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from incrowd.errors import InvalidParameter

CONFIDENCE = 0.95
"""The coverage of the confidence interval of an estimate, unless a score says otherwise."""
NORMAL_95 = 1.959963984540054
"""The normal quantile of that coverage, two-sided."""


@dataclass(frozen=True)
class Score:
    """A number with its definition; an estimate has an interval of a stated kind, an exact number has none.

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
            raise InvalidParameter("an interval needs both ends, or none.")
        if self.low is not None and self.high is not None and not self.low <= self.value <= self.high:
            raise InvalidParameter(f"the score {self.value} lies outside its interval {ends}.")

    @property
    def exact(self) -> bool:
        """Whether the number was counted, not estimated."""
        return self.low is None

    def to_json(self) -> dict[str, Any]:
        """Return the values for JSON; an exact number has no interval."""
        hidden = ("low", "high", "interval") if self.exact else ()
        return {key: value for key, value in asdict(self).items() if key not in hidden}


def share(name: str, successes: float, trials: int, means: str) -> Score:
    """Return a share of independent trials with Wilson's interval.

    Source: Wilson 1927.

    >>> one = share("right", 8, 10, "guesses that were right")
    >>> round(one.low, 3), round(one.high, 3)
    (0.49, 0.943)
    """
    if trials < 1:
        raise InvalidParameter("a share needs at least one trial.")
    p, z2 = successes / trials, NORMAL_95 * NORMAL_95
    middle = (p + z2 / (2 * trials)) / (1 + z2 / trials)
    reach = NORMAL_95 * math.sqrt(p * (1 - p) / trials + z2 / (4 * trials * trials)) / (1 + z2 / trials)
    low, high = max(0.0, middle - reach), min(1.0, middle + reach)
    return Score(name, p, means, min(low, p), max(high, p), "Wilson, 95 %")
