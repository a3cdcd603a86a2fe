"""Optimal unary encoding over 1,000 values, with the server's sum, beside NumPy's generator, which is not secret.

    python -m bench.unary [PEOPLE]          100,000 people by default

The floor draws one float for every bit, compares it and sums the columns.  pure-ldp's oracle of the same law (peer
`unary_pure`, see `bench/rows.py`) encodes and sums a tenth of the people, and its seconds are taken ten times: it
treats one person after another.  The goals: no more than the floor, and a sixtieth of pure-ldp.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from bench.rows import HEAD, Row, finish, peer, show
from incrowd.methods.local.mechanisms.ratio import Weights
from incrowd.methods.local.mechanisms.sets import OptimalUnary
from incrowd.noise.system import SystemCoins

DOMAIN, PART = 1000, 4000
TENTH, FASTER = 10, 60.0


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
    work = f"unary encoding, {people:,} people, {DOMAIN:,} values"
    rows = [show(Row(work, ours, beside, "NumPy floats", 1.0))]
    with tempfile.NamedTemporaryFile(suffix=".npy") as file:
        np.save(file, values[: people // TENTH])
        file.flush()
        theirs = peer("unary_pure", file.name, str(DOMAIN), "1")
    if theirs is not None:
        rows.append(show(Row(f"{work}, pure-ldp", ours, TENTH * theirs["seconds"], "pure-ldp", 1 / FASTER)))
    finish(rows)


if __name__ == "__main__":
    main()
