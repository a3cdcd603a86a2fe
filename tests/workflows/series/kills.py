"""Series killed without warning at random moments, again and again, until every period is published or missing.

    python -m tests.workflows.series.kills --kills 200 [--seed 7] [--method continual]

Each process runs all open periods and is killed with SIGKILL.  Then nothing was charged twice, no period was published
twice, and what was published never changed.  Running counts are charged once, and count everybody once.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.series.series import PeriodState, Series

RELEASES: dict[str, dict[str, Any]] = {
    "private-histogram": {"epsilon": "1/1000"},
    "continual": {"epsilon": 1, "delta": "1e-6", "participations": 1},
}

LAST = {"private-histogram": "2026-02-04", "continual": "2025-12-31"}


def scene(folder: Path, method: str) -> Path:
    """Write rows and a policy with many daily periods into a folder."""
    days = [f"2025-01-{1 + n % 28:02}" for n in range(200)]
    rows = "\n".join(f"p{n % 50},{'a' if n % 3 else 'b'},{day}" for n, day in enumerate(days))
    (folder / "rows.csv").write_text(f"id,cell,day\n{rows}\n", encoding="utf-8")
    policy: dict[str, Any] = {
        "incrowd": 1,
        "dataset": {"name": "days", "unit": {"column": "id"}},
        "source": "rows.csv",
        "columns": {
            "id": {"role": "identifier"},
            "cell": {"categories": ["a", "b"]},
            "day": {"role": "withheld", "type": "date"},
        },
        "period": {"column": "day", "every": "day", "first": "2025-01-01", "last": LAST[method]},
        "release": {"method": method, "columns": ["cell"], **RELEASES[method]},
        "budget": {"epsilon": 1, "delta": "1e-6"},
    }
    path = folder / "policy.yaml"
    path.write_text(json.dumps(policy), encoding="utf-8")
    return path


def play(folder: Path, kills: int, seed: int, method: str = "private-histogram") -> dict[PeriodState, int]:
    """Kill a running series so many times, and check after each kill; return how many periods are in which state."""
    chance, policy = random.Random(seed), scene(folder, method)
    out = folder / "out"
    seen: dict[str, str] = {}
    longest = 0.25
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}  # each line is read when its period is done
    for _ in range(kills):
        command = [sys.executable, "-m", "incrowd", "series", "run", "--policy", str(policy), "--out", str(out)]
        line = [*command, "--until", LAST[method]]
        process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True, env=environment)
        assert process.stdout is not None
        for line_number in range(len(seen) + chance.randint(0, 1)):
            begin = time.monotonic()
            process.stdout.readline()
            if line_number >= len(seen):  # a kill comes at any moment of the next period
                longest = time.monotonic() - begin
        time.sleep(longest * chance.random())
        process.kill()
        process.communicate()
        seen = check(policy, out, seen)
    states = [period.state for period in Series.of(load_policy(policy)).status()]
    return {state: states.count(state) for state in PeriodState}


def check(policy: Path, out: Path, seen: dict[str, str]) -> dict[str, str]:
    """Hold what is published against the ledger and against what was published before."""
    read = load_policy(policy)
    series = Series.of(read)
    if series.ledger is None:
        return {}
    ledger: Ledger = series.ledger
    status = series.status() if ledger.knows("days") else ()
    for period in status:
        assert len(period.releases) <= 1, "a period was charged twice"
    charged = sum(bool(period.releases) for period in status)
    total = ledger.standing("days").totals.spent.epsilon if status else 0
    if read.method.running:
        assert total <= 1, "the series was charged twice"
        assert bool(total) is bool(charged), "a period was opened, and the series was not charged"
        people = [name for period in status if period.certificate for name in counted(policy.parent, period.releases)]
        assert len(people) == len(set(people)), "somebody was counted twice"
    else:
        assert total * 1000 == charged, "the total is not that of the periods that were opened"
    assert not status or ledger.check().ok
    folders = [folder for folder in sorted(out.glob("20*")) if folder.is_dir()]
    published = {folder.name: (folder / "data.parquet").read_bytes().hex() for folder in folders}
    assert all(published[label] == content for label, content in seen.items()), "published numbers changed"
    states = {period.label: period.state for period in status}
    assert all(states[label] is PeriodState.PUBLISHED for label in published), "what appeared is not in the ledger"
    return published


def counted(folder: Path, releases: tuple[str, ...]) -> list[str]:
    """Return who was counted in a period, by the digests that the data holder keeps."""
    files = (folder / ".incrowd" / "internal" / release / "cells.json" for release in releases)
    return [name for file in files for name in json.loads(file.read_text(encoding="utf-8"))["running"]["people"]]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--method", choices=RELEASES, default="private-histogram")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        result = play(Path(temporary), options.kills, options.seed, options.method)
    print(f"{options.kills} kills: " + ", ".join(f"{count} {state}" for state, count in result.items()))
