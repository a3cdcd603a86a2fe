"""Trials: a secret random number of runs, of which the best by a noisy score is kept, and what rows add to a score."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from incrowd.core.codec import encode
from incrowd.core.loss import BestRun, Pure, ZeroConcentrated
from incrowd.core.rounding import short
from incrowd.core.steps.counts import Law
from incrowd.core.steps.step import Step, StepGuarantee, inside, steps_of
from incrowd.core.terms import Assumption, Condition, Theorem
from incrowd.core.words import counted
from incrowd.errors import InvalidParameter
from incrowd.methods.learning.shared.inputs import UNIT
from incrowd.methods.learning.shared.moves import gaussian_rho, squared_move, summed_move
from incrowd.methods.learning.shared.statistics import Integers, Records

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from incrowd.core.coins import Coins
    from incrowd.core.unit import Unit

    Floats = NDArray[np.float64]

BEST = Theorem(
    "best-of-random-runs",
    "Papernot & Steinke 2022, Theorem 2 and Corollary 3: the best of a random number of runs, of the logarithmic law",
)
_SCORED = Condition(
    "best-run-by-noisy-score",
    "every run has randomness and a noisy score of its own, and of all runs only the one with the best score is used",
)
SECRET = Assumption("runs-stay-secret", "how many runs there were, and how long they took, stays with the data holder")


@dataclass(frozen=True)
class TryModels(Step):
    """K times a candidate is drawn, learned and scored with noise; only the run with the best noisy score is kept.

    K is secret: P[K = k] = (1 − γ)^k / (k · ln(1/γ)).  The score is the number of rows whose class is predicted; where
    numbers are, a row adds 0 to `closeness`, the more the closer its prediction is.  With `folds`, an own coin puts
    each row into one of them, rows are scored by a model of the other folds, and the model that is kept is learned from
    all rows.
    """

    kind: ClassVar[str] = "try models"
    title: ClassVar[str] = "Try models"
    proves: ClassVar[tuple[Condition, ...]] = (_SCORED,)

    gamma: Fraction
    noise: Law
    scale: Fraction
    candidates: tuple[tuple[Step, ...], ...]
    folds: int | None = None
    closeness: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.gamma < 1 or self.scale <= 0 or not self.candidates:
            raise InvalidParameter("at least one candidate is tried, by a gamma between 0 and 1 and a noisy score.")
        if self.folds is not None and self.folds < 2:
            raise InvalidParameter("rows are put into two folds at least.")
        if self.closeness is not None and self.closeness < 1:
            raise InvalidParameter("a row adds at most a whole number of 1 or more to a score.")

    @property
    def sentence(self) -> str:
        who = "it" if self.folds is None else f"models of the other {self.folds - 1} folds"
        how = f"by how many rows {who} {'gets' if self.folds is None else 'get'} right"
        if self.closeness is not None:
            how = f"by how close {who} {'comes' if self.folds is None else 'come'} to each row, 0 to {self.closeness:,}"
        return (
            f"A secret random number of times, one of {counted(len(self.candidates), 'candidate')} is drawn, learned, "
            f"and scored {how}, with {self.noise} noise of scale {float(self.scale):.4g}; only the run with the best "
            "noisy score is kept, and of the others nothing."
        )

    @property
    def held(self) -> tuple[Step, ...]:
        return tuple(step for steps in self.candidates for step in steps)

    @property
    def reach(self) -> int:
        """What a row adds to a score, at most."""
        return self.closeness or 1

    def fits(self, unit: Unit) -> int:
        """Return how many models of one run a unit has a part in, at most.

        A single row is in one fold, and has no part in the model that is learned from the others.
        """
        return 1 if self.folds is None else self.folds + (unit.max_rows > 1)

    def around(self, inner: StepGuarantee, unit: Unit) -> StepGuarantee:
        if inner.loss is not None:
            raise InvalidParameter("nothing else is summed beside candidates that are tried.")
        parts = [inside(steps, unit) for steps in self.candidates]
        reasons = dict.fromkeys((*(reason for part in parts for reason in part.because), self.noise.source, BEST))
        assumes = frozenset({SECRET}).union(*(part.assumes for part in parts))
        return StepGuarantee(
            BestRun(self.gamma, self._run([part.loss for part in parts], unit)), tuple(reasons), assumes
        )

    def _run(self, losses: list[Any], unit: Unit) -> Pure | ZeroConcentrated:
        """Return what one run costs: the dearest candidate as often as a unit meets it, and the score."""
        fits = self.fits(unit)
        if self.noise is Law.LAPLACE and all(isinstance(loss, Pure) for loss in losses):
            return Pure(fits * max(loss.epsilon for loss in losses) + summed_move(unit, self.reach) / self.scale)
        if self.noise is Law.GAUSSIAN and all(isinstance(loss, ZeroConcentrated) for loss in losses):
            score = gaussian_rho(self.scale, squared_move(unit, self.reach**2, aligned=True))
            return ZeroConcentrated(fits * max(loss.rho for loss in losses) + score)
        raise InvalidParameter("candidates and their score have noise of one kind.")

    def to_json(self) -> dict[str, Any]:
        stated = {"gamma": str(self.gamma), "noise": encode(self.noise), "scale": str(self.scale)}
        steps = [[step.to_json() for step in steps] for steps in self.candidates]
        more = {"folds": self.folds, "closeness": self.closeness}
        present = {name: value for name, value in more.items() if value is not None}
        return {"step": self.kind, **stated, "candidates": steps, **present}

    @classmethod
    def read(cls, plain: Mapping[str, Any], classes: Iterable[type[Step]]) -> TryModels | None:
        others = tuple(step_class for step_class in classes if step_class is not cls)
        try:
            step = cls(
                Fraction(short(plain["gamma"])),
                Law(plain["noise"]),
                Fraction(short(plain["scale"])),
                tuple(steps_of(steps, others) for steps in plain["candidates"]),
                plain.get("folds"),
                plain.get("closeness"),
            )
        except (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError):
            return None
        whole = all(type(plain.get(name, 2)) is int for name in ("folds", "closeness"))
        return step if whole and step.to_json() == plain else None


Outcome = TypeVar("Outcome")
_PIECE = 2**20  # rows at a time
_FINE = _LARGEST = 2.0**20  # scores are whole multiples of 2⁻²⁰ within ±2²⁰: the products of both stay within 2⁵³


def number_of_runs(gamma: Fraction, coins: Coins) -> int:
    """Draw K of the logarithmic law exactly: a geometric number k, taken with chance 1/k, or else another."""
    while True:
        number = 1
        while not coins.bernoulli(gamma, 1)[0]:
            number += 1
        if coins.below(number, 1)[0] == 0:
            return number


def best_run(gamma: Fraction, run: Callable[[Coins], tuple[int, Outcome]], coins: Coins) -> Outcome:
    """Run a secret random number of times, and return what the run with the best score made, the first among equals."""
    best, outcome = run(coins)
    for _ in range(number_of_runs(gamma, coins) - 1):
        score, made = run(coins)
        if score > best:
            best, outcome = score, made
    return outcome


@dataclass(frozen=True, eq=False)
class Folds:
    """Records whose rows were put into folds, an own coin each: how many rows of each record are in each fold."""

    records: Records
    counts: Integers

    @classmethod
    def deal(cls, records: Records, folds: int, coins: Coins) -> Folds:
        """Put each row into a fold of its own, whatever the others are."""
        ends = np.cumsum(records.counts.counts)
        total, counts = int(ends[-1]) if len(ends) else 0, np.zeros((len(ends), folds), np.int64)
        for start in range(0, total, _PIECE):
            rows = np.arange(start, min(total, start + _PIECE))
            places = np.searchsorted(ends, rows, side="right") * folds + coins.below(folds, len(rows))
            counts += np.bincount(places, minlength=counts.size).reshape(counts.shape)
        return cls(records, counts)

    def pairs(self) -> Iterator[tuple[Records, Records]]:
        """Return for each fold the rows of the others, and its own."""
        every = self.counts.sum(axis=1)
        for fold in range(self.counts.shape[1]):
            own = self.counts[:, fold]
            yield self._of(every - own), self._of(own)

    def _of(self, counts: Integers) -> Records:
        return Records(replace(self.records.counts, counts=counts), self.records.sizes)


def right_rows(offset: Floats, tables: Sequence[Floats], records: Records, outputs: int) -> int:
    """Return for how many rows the largest score is that of their class, the scores taken as whole numbers.

    The target is the last column of the records; rows of classes of it from `outputs` on are never right.
    """
    right = 0
    for codes, times, scores in _scored(offset, tables, records):
        right += int(times[(scores.argmax(axis=1) == codes[:, -1]) & (codes[:, -1] < outputs)].sum())
    return right


CLOSE = 2**10
"""What a row adds to a score whose number is predicted exactly; no row adds more."""


def close_rows(offset: Floats, tables: Sequence[Floats], records: Records, units: Integers) -> int:
    """Return how close all predictions are together: `CLOSE` where a row's is exact, 0 where it is off by half a range.

    A squared distance counts, as in R².  Scores are in halves of the declared range, and `units` are those of the
    target's classes, from −`UNIT` to `UNIT`; rows of other classes of it add nothing.
    """
    closeness = 0
    for codes, times, scores in _scored(offset, tables, records):
        declared = codes[:, -1] < len(units)
        truth = units[np.where(declared, codes[:, -1], 0)]
        away = np.minimum(np.abs(scores[:, 0] - truth * _STEP) // _COARSE, CLOSE)
        near = CLOSE - away * away // CLOSE
        closeness += int((np.where(declared, near, 0) * times).sum())
    return closeness


def _scored(
    offset: Floats, tables: Sequence[Floats], records: Records
) -> Iterator[tuple[Integers, Integers, Integers]]:
    """Return codes, how many rows have them, and whole scores, some records at a time."""
    first, others = _whole(offset), [_whole(table) for table in tables]
    for codes, times in records.pieces():
        scores = np.tile(first, (len(codes), 1))
        for place, table in enumerate(others):
            scores += table[codes[:, place]]
        yield codes, times, scores


_COARSE, _STEP = 2**20 // CLOSE, 2**20 // UNIT  # of whole scores: as fine as a row is counted, and a unit


def _whole(numbers: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> Integers:
    return np.rint(_FINE * np.clip(numbers, -_LARGEST, _LARGEST)).astype(np.int64)
