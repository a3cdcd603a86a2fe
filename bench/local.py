"""Randomizers of surveys beside pure-ldp and multi-freq-ldpy: seconds, errors by likelihood, too; reports accepted.

    python bench/local.py [PEOPLE] [--peers FOLDER]          100,000 people by default

FOLDER holds an environment for each peer, FOLDER/NAME/bin/python with the package that bench/peers/NAME.py imports.
Peers are run on the same answers, 5,000 of them, and their seconds are scaled to PEOPLE.  Answers are Zipf's over 20
and 100 values, ε is 1.  Errors are mean squared errors of a share, times 10^6: unbiased (by inversion), projected, and
likeliest.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from incrowd.methods.local.choice import randomizers
from incrowd.methods.local.estimates import Support, projected
from incrowd.methods.local.likelihood import likeliest
from incrowd.methods.local.mechanisms.randomizer import Categorical, Values
from incrowd.methods.local.mechanisms.ratio import Weights
from incrowd.noise.system import SystemCoins
from incrowd.workflows.collect.collector import Collector
from incrowd.workflows.local.opening import open_survey
from incrowd.workflows.local.survey_file import survey_of

PEERS = ("local_pure", "local_multi_freq")
DOMAINS = (20, 100)
BATCH = 10_000
FEW = 5_000
"""So many people have their reports compared with those of peers, and the likelihood taken."""
RUNS = 5


def answers(size: int, people: int, run: int = 0) -> Values:
    """Return answers whose shares fall as those of words do."""
    shares = 1.0 / np.arange(1, size + 1) ** 1.3
    return np.random.default_rng([7, run]).choice(size, people, p=shares / shares.sum()).astype(np.int64)


def seconds(found: Categorical, values: Values) -> tuple[float, float]:
    """Return the CPU seconds of all clients, and of the server."""
    start = time.process_time()
    reports = found.randomize(values, SystemCoins())
    sent = time.process_time()
    found.support(reports)
    return sent - start, time.process_time() - sent


def errors(found: Categorical, run: int) -> list[float]:
    """Return the errors of unbiased, projected and likeliest shares."""
    values = answers(found.size, FEW, run)
    reports = found.randomize(values, SystemCoins())
    unbiased = Support(FEW, found.p, found.q).estimates(found.support(reports))
    truth = np.bincount(values, minlength=found.size) / FEW
    made = (unbiased, projected(unbiased), likeliest(found, reports))
    return [1e6 * float(np.mean((shares - truth) ** 2)) for shares in made]


def peer(name: str, folder: Path | None, size: int) -> dict[str, dict[str, float]]:
    """Run a peer in its own environment on the answers of each run, and return means by mechanism."""
    if folder is None:
        return {}
    rows: list[dict[str, Any]] = []
    for run in range(RUNS):
        with tempfile.TemporaryDirectory() as place:
            np.save(Path(place) / "values.npy", answers(size, FEW, run))
            script = Path(__file__).parent / "peers" / f"{name}.py"
            command = [str(folder / name / "bin" / "python"), str(script), f"{place}/values.npy", str(size), "1"]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            rows.append(json.loads(done.stdout.splitlines()[-1]))
    return {kind: {key: float(np.mean([row[kind][key] for row in rows])) for key in rows[0][kind]} for kind in rows[0]}


def mechanisms(people: int, folder: Path | None) -> None:
    weights, half = Weights.below(Fraction(1)), Weights.below(Fraction(1, 2))
    for size in DOMAINS:
        values, theirs = answers(size, people), {name: peer(name, folder, size) for name in PEERS}
        print(f"\n{size} values, epsilon 1: seconds of {people:,} people; errors of {FEW:,}, {RUNS} runs, times 10^6")
        heads = ("client s", "server s", "inversion", "projected", "likeliest")
        peers = ("pure-ldp s", "inversion", "mfl s", "inversion", "IBU")
        print(f"{'mechanism':16} " + " ".join(f"{name:>10}" for name in (*heads, *peers)))
        for found in randomizers(size, weights, half):
            ours = [*seconds(found, values), *np.mean([errors(found, run) for run in range(RUNS)], axis=0)]
            print(f"{found.family:16} " + " ".join(f"{number:10.3g}" for number in ours), end=" ")
            print(" ".join(_beside(theirs[name].get(str(found.family)), people) for name in PEERS), flush=True)


def _beside(row: dict[str, float] | None, people: int) -> str:
    """Return seconds, scaled, and errors of a peer; its likelihood where it has one."""
    if row is None:
        return " ".join(["         –"] * 2)
    spent = (row["client"] + row["inversion seconds"]) * people / FEW
    found = [spent, *(1e6 * row[key] for key in ("inversion", "likelihood") if key in row)]
    return " ".join(f"{number:10.3g}" for number in found)


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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("people", type=int, nargs="?", default=100_000)
    parser.add_argument("--peers", type=Path)
    options = parser.parse_args()
    mechanisms(options.people, options.peers)
    collecting()


if __name__ == "__main__":
    main()
