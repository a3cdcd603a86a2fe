"""Composition beside dp-accounting, in one run: the ε of both and the seconds of both; exit 1 if a goal is missed.

Goal: an ε of at most 1.02 times the peer's, and not below the peer's own lower bound, where it has one.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dp_accounting.pld import privacy_loss_distribution as peer

from incrowd.accounting import accountant
from incrowd.core.loss import Gaussian, GaussianRounds, Laplace, Loss, Sampled, Sequence

DELTA = 1e-6
MOST = 1.02


@dataclass(frozen=True)
class Case:
    """A loss, and how the peer makes its distribution, from above or from below; None where it has no lower one."""

    what: str
    loss: Loss
    times: int
    theirs: Callable[[bool], Any]
    bounded_below: bool = True

    def measure(self) -> tuple[float, float, float, float, float]:
        """Return our ε, the peer's upper and lower one, our seconds and the peer's."""
        start = time.process_time()
        ours = accountant.epsilon(self.loss, DELTA).value
        middle = time.process_time()
        upper = self.theirs(True).self_compose(self.times).get_epsilon_for_delta(DELTA)
        end = time.process_time()
        lower = self.theirs(False).self_compose(self.times).get_epsilon_for_delta(DELTA) if self.bounded_below else 0.0
        return ours, upper, lower, middle - start, end - middle


def _gaussian(scale: float, rate: float = 1.0) -> Callable[[bool], Any]:
    return lambda above: peer.from_gaussian_mechanism(scale, sampling_prob=rate, pessimistic_estimate=above)


def _laplace(scale: float, rate: float = 1.0) -> Callable[[bool], Any]:
    return lambda _: peer.from_discrete_laplace_mechanism(1.0 / scale, 1, sampling_prob=rate)


def _many(loss: Loss, times: int) -> Sequence:
    return Sequence((loss,) * times)


def _sampled(rate: int, scale: int, move: int) -> Sampled:
    return Sampled(Fraction(1, rate), Gaussian(Fraction(scale), move))


CASES = (
    Case("sampled Gaussian, q .01, σ 1, 1,000 rounds", _many(_sampled(100, 1, 1), 1000), 1000, _gaussian(1.0, 0.01)),
    Case("the same, σ 1,000 on a move of 1,000", _many(_sampled(100, 1000, 1000), 1000), 1000, _gaussian(1.0, 0.01)),
    Case("sampled Gaussian, q .1, σ 2, 1,344 rounds", _many(_sampled(10, 64, 32), 1344), 1344, _gaussian(2.0, 0.1)),
    Case(
        "sampled Laplace, q .01, scale 1, 1,000 rounds",
        _many(Sampled(Fraction(1, 100), Laplace(Fraction(1))), 1000),
        1000,
        _laplace(1.0, 0.01),
        bounded_below=False,
    ),
    Case("Laplace, scale 20, 100", _many(Laplace(Fraction(20)), 100), 100, _laplace(20.0), bounded_below=False),
    Case("Gaussian, σ 10, 100", _many(Gaussian(Fraction(10)), 100), 100, _gaussian(10.0)),
    Case(
        "Gaussian rounds, ρ 1/8, σ 500, 50 moved", GaussianRounds(Fraction(1, 8), Fraction(500), 50), 1, _gaussian(2.0)
    ),
)


def main() -> int:
    print(f"{'δ = 1e-6':<48}{'ε':>10}{'peer':>10}{'ratio':>9}{'seconds':>9}{'peer':>8}")
    missed = False
    for case in CASES:
        ours, upper, lower, seconds, peers = case.measure()
        bad = ours > MOST * upper or ours < lower * (1.0 - 1e-4)
        missed |= bad
        print(
            f"{case.what:<48}{ours:>10.4f}{upper:>10.4f}{ours / upper:>9.4f}{seconds:>9.2f}{peers:>8.2f}"
            f"{'  MISSED' if bad else ''}"
        )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
