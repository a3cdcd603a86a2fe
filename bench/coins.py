"""Noise and secret samples: nanoseconds a draw, beside OpenDP's samplers and NumPy's (not secret) generator."""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np

from incrowd.noise.system import SystemCoins

COINS = SystemCoins()
DRAWS, PEER_DRAWS, ROWS = 1_000_000, 50_000, 10_000_000


def nanoseconds(draw: Callable[[], object], size: int) -> float:
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        draw()
        best = min(best, time.process_time() - start)
    return best / size * 1e9


def opendp_draw(kind: str, scale: float) -> Callable[[], object]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    metric = dp.l1_distance(T="i64") if kind == "laplace" else dp.l2_distance(T="f64")
    make = dp.m.make_laplace if kind == "laplace" else dp.m.make_gaussian
    measurement = make(dp.vector_domain(dp.atom_domain(T="i64")), metric, scale=scale)
    zeros = [0] * PEER_DRAWS
    return lambda: measurement(zeros)


def noise() -> None:
    print(f"{'noise':<10}{'scale':>10}{'incrowd ns':>14}{'OpenDP ns':>12}{'ratio':>8}")
    for kind, draw in (("laplace", COINS.laplace), ("gaussian", COINS.gaussian)):
        for scale in (1, 10, 1_000, 1_000_000):
            ours = nanoseconds(partial(draw, Fraction(scale), DRAWS), DRAWS)
            peer = nanoseconds(opendp_draw(kind, float(scale)), PEER_DRAWS)
            print(f"{kind:<10}{scale:>10}{ours:>14.1f}{peer:>12.0f}{peer / ours:>8.0f}")


def samples() -> None:
    sample = COINS.sample(Fraction(1, 10))
    ids = np.arange(ROWS, dtype=np.uint64)
    generator = np.random.default_rng()
    print(f"{'sample':<28}{'ns a row':>10}")
    print(f"{'by position':<28}{nanoseconds(lambda: sample.at(0, ROWS), ROWS):>10.2f}")
    print(f"{'by id':<28}{nanoseconds(lambda: sample.of(ids), ROWS):>10.2f}")
    floor = nanoseconds(lambda: generator.random(ROWS) < 0.1, ROWS)
    print(f"{'NumPy, which is not secret':<28}{floor:>10.2f}")
    sparse = nanoseconds(lambda: COINS.outliers(Fraction(1), 15, 10**12), 1)
    print(f"a threshold on 10^12 empty bins: {sparse / 1e9:.3f} s")


if __name__ == "__main__":
    noise()
    samples()
