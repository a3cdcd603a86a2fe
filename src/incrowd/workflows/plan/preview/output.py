"""Kept: what a private look shows of each choice: an estimate, an interval, and how far one draw strays besides."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from incrowd.methods.shared.outcome import Outcome
from incrowd.workflows.plan.preview.steps import FINENESS, WeighedChoice

if TYPE_CHECKING:
    from incrowd.core.unit import Unit

MISS = 0.05
"""With this chance at most, some interval of a look misses the truth."""
_TOO_WIDE = 0.5  # an interval of half the range says nothing
_SCHEMA = pa.schema(
    [("levels", pa.string()), ("k", pa.int64()), ("rate", pa.string()), ("detail", pa.float64())]
    + [(name, pa.float64()) for name in ("kept", "low", "high", "draw")]
)


@dataclass(frozen=True)
class KeptEstimate:
    """What one choice is expected to keep: rows, an interval, and how far one draw strays from it, at most.

    `detail` is what a kept row keeps of its details, as the declaration says; `worth` is both together.  `draw` is
    two standard deviations of the number kept in one draw, for the worst table that keeps as many in expectation as the
    interval allows: it is no noise of the look, and a release has it whatever the look costs.
    """

    levels: Mapping[str, int]
    k: int
    rate: Fraction
    detail: float
    expected: float
    low: float
    high: float
    draw: float

    @property
    def worth(self) -> float:
        """Rows kept, each counted by what it keeps of its details."""
        return self.expected * self.detail

    @property
    def useless(self) -> bool:
        """Whether the interval is wider than the estimate itself, so that it says little about this choice."""
        return self.high - self.expected > _TOO_WIDE * self.expected

    def to_json(self) -> dict[str, Any]:
        """Return the plain form printed by `--json`."""
        numbers = {name: getattr(self, name) for name in ("k", "detail", "low", "high", "draw", "useless")}
        return {"levels": dict(self.levels), "rate": str(self.rate), "kept": self.expected, **numbers}


@dataclass(frozen=True, eq=False)
class KeptChoices(Outcome):
    """The noisy sums of all choices in steps of 1/FINENESS row, and the half-widths of intervals that hold together."""

    form: ClassVar[str] = "private look"

    names: tuple[str, ...]
    choices: tuple[WeighedChoice, ...]
    details: tuple[float, ...]
    sums: tuple[int, ...]
    within: tuple[int, ...]

    @cached_property
    def estimates(self) -> tuple[KeptEstimate, ...]:
        """What each choice is expected to keep; nothing is below zero."""
        return tuple(map(self._estimate, range(len(self.choices))))

    @property
    def place(self) -> int:
        """Which choice is worth most, by the noisy numbers: computed from them alone, so it costs nothing more."""
        return int(np.argmax([total * detail for total, detail in zip(self.sums, self.details, strict=True)]))

    @property
    def best(self) -> KeptEstimate:
        """The choice that is worth most."""
        return self.estimates[self.place]

    @property
    def useless(self) -> bool:
        """Whether the intervals are too wide to choose by."""
        return self.best.useless

    def _estimate(self, place: int) -> KeptEstimate:
        choice, total, within = self.choices[place], self.sums[place], self.within[place]
        estimate, low, high = (max(0.0, number / FINENESS) for number in (total, total - within, total + within))
        draw = 2.0 * math.sqrt(spread(choice.k, choice.rate) * high)
        levels = dict(zip(self.names, choice.levels, strict=True))
        return KeptEstimate(levels, choice.k, choice.rate, self.details[place], estimate, low, high, draw)

    @property
    def schema(self) -> pa.Schema:
        """One row a choice."""
        return _SCHEMA

    def __len__(self) -> int:
        return len(self.choices)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Return the estimates in the order of the choices."""
        rows = [
            {
                **vars(estimate),
                "kept": estimate.expected,
                "rate": str(estimate.rate),
                "levels": ", ".join(f"{n} {level}" for n, level in estimate.levels.items()),
            }
            for estimate in self.estimates
        ]
        yield pa.RecordBatch.from_pylist(rows, schema=_SCHEMA)

    def evidence(self, unit: Unit, *, private: bool) -> dict[str, Any]:
        """Return the noisy numbers themselves: all that the look shows follows from them and from the steps."""
        return {"sums": list(self.sums), "within": list(self.within), "steps a row": FINENESS, "best": self.place}


@lru_cache(maxsize=256)
def spread(k: int, rate: Fraction) -> float:
    """Return the most that the variance of the number kept can be, as a multiple of its expectation.

    Both add up over cells, so the largest quotient of one cell bounds that of every table.  With n rows in a cell and
    X ~ Bin(n, β), E[X·1{X ≥ k}] = nβ·P[Bin(n − 1, β) ≥ k − 1], and E[X²·1{X ≥ k}] = n(n − 1)β²·P[Bin(n − 2, β) ≥ k − 2]
    more.  It is near k where crowds are just missed, and 1 − β where all are far above k.

    >>> 8 < spread(8, Fraction(1, 10)) < 9, spread(1, Fraction(1, 2)) < 1
    (True, True)
    """
    from scipy.stats import binom

    beta = float(rate)
    n = np.arange(max(2, k), max(64, math.ceil(4 * k / beta)), dtype=np.float64)
    first = n * beta * binom.sf(k - 2, n - 1, beta)
    second = first + n * (n - 1.0) * beta**2 * binom.sf(k - 3, n - 2, beta)
    there = first > 0.0
    return float(np.max((second[there] - first[there] ** 2) / first[there]))
