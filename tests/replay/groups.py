"""Groups that only one unit has: the chance that the real answer shows any of them, against the δ of the threshold.

The rows are those of one unit alone, in as many groups as it may have.  The real release runs with one number in the
place of all noise; the least number with which a group is shown gives the chance, from a law that is written out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np

from incrowd.core.unit import Kind
from incrowd.queries.measurement import Measurement
from incrowd.verifier.slow_accountant.noise import cube_tail, gaussian_tail, laplace_tail
from tests.replay.golden import Parts
from tests.replay.questions import Asked, Rows, requested
from tests.replay.replaying import TOLERANCE

OPEN = (
    "SELECT note, COUNT(*) FROM rows GROUP BY note",
    "SELECT note, COUNT(*) FROM visits GROUP BY note",
    "SELECT note, COUNT(*), SUM(age), SUM(cost), COUNT(age), SUM(CLAMP(code, 0, 5)) FROM visits GROUP BY note",
    "SELECT note, COUNT(DISTINCT patient) FROM visits GROUP BY note",
    "SELECT note, COUNT(*), SUM(age), SUM(cost), SUM(CLAMP(code, 0, 5)) FROM rows GROUP BY note",
)
_FAR = 10**6


@dataclass
class OneNoise:
    """Coins whose noise is one number, and which write down the law of the noise on the count."""

    value: int
    laws: list[tuple[Any, ...]] = field(default_factory=list)

    def laplace(self, scale: Fraction, size: int) -> Any:
        self.laws.append(("laplace", scale))
        return np.full(size, self.value, np.int64)

    def gaussian(self, scale: Fraction, size: int) -> Any:
        self.laws.append(("gaussian", scale))
        return np.full(size, self.value, np.int64)

    def cube(self, widths: tuple[int, ...], fine: int, scale: Fraction, size: int) -> Any:
        self.laws.append(("cube", widths, fine, scale))
        return np.full((size, len(widths)), self.value, np.int64)

    def tail(self, counting: int) -> float:
        """Return the chance of noise on the count that is at least as large."""
        first = self.laws[0]
        match first:
            case ("cube", widths, fine, scale):
                return cube_tail(widths, (fine, scale), counting, self.value)
            case ("laplace", scale):
                return laplace_tail(scale, self.value)
        return gaussian_tail(self.laws[counting][1], self.value)


def parts(sql: str, connection: duckdb.DuckDBPyConnection) -> Parts:
    """Return which part of δ the chance is that a group of one unit alone is shown."""
    measured = requested(sql)
    counting, threshold = measured.sums.counting, measured.noise_choice.threshold
    assert counting is not None
    assert threshold is not None
    worst = max(_chance(measured, Asked(connection, rows), counting) for rows in _alone(measured))
    assert worst <= float(threshold.delta) * (1 + TOLERANCE), f"groups of one unit are shown with a chance of {worst}"
    return {"group of one unit alone": worst / float(threshold.delta)}


def _chance(measured: Measurement, asked: Asked, counting: int) -> float:
    """Return the chance that some group is shown: all have the same count, so noise decides in each of them alike."""
    low, high = 0, _FAR
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _shown(measured, asked, OneNoise(middle)) else (middle, high)
    coins = OneNoise(high)
    return _shown(measured, asked, coins) * coins.tail(counting)


def _shown(measured: Measurement, asked: Asked, coins: Any) -> int:
    output: Any = measured.plan.release(asked, coins)
    return int(output.answers[0].table.num_rows)


def _alone(measured: Measurement) -> Iterator[dict[str, Rows]]:
    """Return the rows of one unit: each in a group of its own, and all in one group."""
    (name,) = measured.question.tables
    reach = measured.question.contribution
    person = (1,) if measured.plan.unit.kind is Kind.PERSON else ()
    for names in (range(reach.groups), [0] * reach.rows):
        yield {name: [(*person, 50, 1.0, "heart", "2024-05-01", True, f"note {place}", 3) for place in names]}
