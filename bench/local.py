"""A million people, domains of 100 and 1,000, ε = 1: client, server and error beside pure-ldp; and reports accepted.

    python bench/local.py [PEOPLE]          1,000,000 by default

Seconds of pure-ldp are those measured for a million people, client and server together; they are scaled to PEOPLE.  The
error is the mean squared error of a share, beside its closed form; for subset selection also beside the optimum.
"""

from __future__ import annotations

import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path

import numpy as np

from incrowd.methods.local.choice import optimum, randomizers
from incrowd.methods.local.estimates import Support
from incrowd.methods.local.mechanisms.randomizer import Categorical, Values
from incrowd.methods.local.mechanisms.ratio import Weights
from incrowd.noise.system import SystemCoins
from incrowd.workflows.collect.collector import Collector
from incrowd.workflows.local.opening import open_survey
from incrowd.workflows.local.survey_file import survey_of

PEERS = {
    "response": (0.7, 1.9),
    "optimal-unary": (14.0, 94.0),
    "local-hashing": (70.0, 1120.0),
    "hadamard": (12.0, 12.0),
    "symmetric-unary": (62.0, 594.0),  # RAPPOR
}
DOMAINS = (100, 1000)
BATCH = 10_000


def measured(found: Categorical, values: Values) -> tuple[float, float, float]:
    start = time.process_time()
    reports = found.randomize(values, SystemCoins())
    sent = time.process_time()
    counts = found.support(reports)
    done = time.process_time()
    shares = np.bincount(values, minlength=found.size) / len(values)
    error = float(np.mean((Support(len(values), found.p, found.q).estimates(counts) - shares) ** 2))
    return sent - start, done - sent, error


def mechanisms(people: int) -> None:
    weights, half = Weights.below(Fraction(1)), Weights.below(Fraction(1, 2))
    for place, size in enumerate(DOMAINS):
        values = np.random.default_rng(7).zipf(1.3, people) % size
        print(
            f"\n{people:,} people, {size} values, epsilon 1; optimum {optimum(size, 1.0) / people / size:.3g} a share"
        )
        head = ("client s", "server s", "pure-ldp s", "faster", "MSE", "expected")
        for found in randomizers(size, weights, half):
            measured(found, values[:1000].astype(np.int64))  # what is loaded once
        print(f"{'mechanism':16} " + " ".join(f"{each:>10}" for each in head))
        for found in randomizers(size, weights, half):
            client, server, error = measured(found, values.astype(np.int64))
            peer = PEERS.get(found.family)
            theirs = None if peer is None else peer[place] * people / 1e6
            beside = f"{'':>10} {'':>10}" if theirs is None else f"{theirs:10.1f} {theirs / (client + server):9.0f}x"
            expected = float(found.error) / people / size
            print(
                f"{found.family:16} {client:10.2f} {server:10.2f} {beside} {error:10.3g} {expected:10.3g}", flush=True
            )


def collecting(number: int = 50_000) -> None:
    told = {"survey": "1", "name": "bench", "epsilon": "1", "questions": {"a": {"categories": ["w", "x", "y", "z"]}}}
    with tempfile.TemporaryDirectory() as folder:
        at = Collector.beside(open_survey(survey_of(told, Path(folder))))
        tokens = at.tokens
        reports = at.survey.randomize({"a": ["x"] * number}, SystemCoins())
        given = [{"token": tokens.issue(), "report": report} for report in reports]
        wall, start = time.monotonic(), time.process_time()
        for first in range(0, number, BATCH):
            at.receive(given[first : first + BATCH], tokens)
        spent, passed = time.process_time() - start, time.monotonic() - wall
    print(f"\n{number:,} reports in batches of {BATCH:,}: {number / spent:,.0f} a CPU second")
    print(f"and {number / passed:,.0f} a second, the disk included")


def main() -> None:
    mechanisms(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
    collecting()


if __name__ == "__main__":
    main()
