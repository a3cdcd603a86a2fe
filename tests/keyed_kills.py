"""Releases with a key, killed without warning at random moments and tried again until they are done.

    python -m tests.keyed_kills [--rounds 200] [--seed 7]

Each round names a new key and kills its process at a random part of the time that a release takes, up to three times;
then it runs to its end, and once more.  What must hold does not depend on the moment: a key has at most one release
that came to something; each charge before it was concluded as nothing; the files are those that the ledger names, the
same after the last try; nothing staged is left.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import chdir
from pathlib import Path

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.workflows.certificates import read_certificate
from incrowd.workflows.policy.ledger import find_book
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import ReleaseTerms, release_to
from incrowd.workflows.verify.verify import verify

POLICY = {
    "incrowd": 1,
    "dataset": {"name": "people"},
    "columns": {"sex": {"categories": ["f", "m"]}},
    "release": {"method": "safe", "rate": "1/2", "epsilon": 1, "delta": "1e-6"},
    "budget": {"epsilon": 5000, "delta": "1/10"},
}


def attempt(key: str, killed_after: float | None = None) -> float:
    """Release in a process of its own, which is killed after so many seconds; return how long it took."""
    begun = time.monotonic()
    child = os.fork()
    if child == 0:
        try:
            release_to("people.csv", "policy.yaml", Destination(key, "csv"), terms=ReleaseTerms(key=key))
        except BaseException as error:  # noqa: BLE001 - its parent looks at the code
            print(type(error).__name__, error, flush=True)
            os._exit(1)
        os._exit(0)
    if killed_after is not None:
        time.sleep(killed_after)
        os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code == 0 or (killed_after is not None and code == -signal.SIGKILL), f"{key} ended with {code}"
    return time.monotonic() - begun


def ledger() -> Ledger | None:
    """Return the ledger, if the first process lived to make it."""
    return find_book(load_policy(Path("policy.yaml")))


def charges(book: Ledger | None) -> list[str]:
    """Return the releases that were charged, in order."""
    return [] if book is None else [entry.body["release"] for entry in book.entries() if entry.kind == "charge"]


def one(number: int, chance: random.Random, takes: float) -> tuple[int, ...]:
    """Kill and retry one release, and return how often it was charged: before the last try, and by it."""
    key, before = f"run-{number}", len(charges(ledger()))
    for _ in range(chance.randint(1, 3)):
        attempt(key, chance.random() * takes)
    at_kill = len(charges(ledger())) - before
    attempt(key)
    files = {path.name: path.read_bytes() for path in Path(key).iterdir()}
    attempt(key)
    assert files == {path.name: path.read_bytes() for path in Path(key).iterdir()}, "the files changed"
    book = ledger()
    assert book is not None
    assert book.check().ok
    mine = charges(book)[before:]
    outcomes = [book.conclusions(release)[-1:] for release in mine]
    assert outcomes[:-1] == [(None,)] * (len(mine) - 1), "a charge before the last one was not concluded as nothing"
    certificate = read_certificate(Path(key))
    assert (certificate.id, outcomes[-1]) == (mine[-1], (certificate.digest(),)), "another release than the ledger's"
    assert verify(Path(key)).failure is None
    assert not list(Path.cwd().rglob(".*.incrowd-*/*")), "something staged is left"
    return at_kill, len(mine) - at_kill


def main() -> None:
    """Run the rounds and print in how many of them the last try was free, and in how many it was charged."""
    options = argparse.ArgumentParser()
    options.add_argument("--rounds", type=int, default=200)
    options.add_argument("--seed", type=int, default=7)
    parsed = options.parse_args()
    chance = random.Random(parsed.seed)
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        Path("policy.yaml").write_text(json.dumps(POLICY), encoding="utf-8")
        Path("people.csv").write_text("sex\n" + "f\nm\n" * 2000, encoding="utf-8")
        attempt("first")
        takes = sorted(attempt(f"timed-{at}") for at in range(3))[1]
        found = Counter[tuple[int, ...]]()
        for number in range(parsed.rounds):
            found[one(number, chance, takes)] += 1
            print(f"round {number + 1}", end="\r", file=sys.stderr, flush=True)
    for (before, after), rounds in sorted(found.items()):
        print(f"{rounds} rounds: {before} charges by killed tries, {after} by the last one")
    print(f"{sum(found.values())} rounds, and what must hold held in all of them")


if __name__ == "__main__":
    main()
