"""Optimal unary encoding over 1,000 values, with the server's sum, beside NumPy's generator, which is not secret.

    python -m bench.unary [PEOPLE]          100,000 people by default

The floor draws one float for every bit, compares it and sums the columns.  pure-ldp, which `bench/local.py` runs where
it is installed, takes about a hundred times as long.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from bench.rows import HEAD, Row, finish, show
from incrowd.methods.local.mechanisms.ratio import Weights
from incrowd.methods.local.mechanisms.sets import OptimalUnary
from incrowd.noise.system import SystemCoins

DOMAIN, PART = 1000, 4000


def seconds(work: Callable[[], object]) -> float:
    """Return the CPU seconds of some work."""
    start = time.process_time()
    work()
    return time.process_time() - start


def floor(people: int, chance: Fraction) -> np.ndarray:
    """Draw and sum bits by floats."""
    generator, total = np.random.default_rng(1), np.zeros(DOMAIN, np.int64)
    for start in range(0, people, PART):
        total += (generator.random((min(PART, people - start), DOMAIN)) < float(chance)).sum(axis=0)
    return total


def main() -> None:
    """Measure both; exit 1 where ours takes longer."""
    people = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    mechanism = OptimalUnary(DOMAIN, Weights(2718, 1000))
    values = np.random.default_rng(2).integers(0, DOMAIN, people)
    pairs = [
        (
            seconds(lambda: floor(people, mechanism.q)),
            seconds(lambda: mechanism.support(mechanism.randomize(values, SystemCoins()))),
        )
        for _ in range(3)
    ]
    beside, ours = (min(side) for side in zip(*pairs, strict=True))
    print(HEAD)
    finish([show(Row(f"unary encoding, {people:,} people, {DOMAIN:,} values", ours, beside, "NumPy floats", 1.0))])


if __name__ == "__main__":
    main()
