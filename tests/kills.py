"""Processes killed without warning, at random moments, over rows with planted identifiers; and what they left behind.

    python -m tests.kills --rounds 200 [--seed 7]

Each round starts `release`, `query` or `serve` on a CSV file or on a view of an SQLite file, kills it with SIGKILL, and
looks at everything below the temporary folder and the working folder.  Every other round dies after a random part of
the time that its verb takes, the others a random moment after their charge.  What must hold holds at every moment, so
the verdict does not depend on the machine or its load.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.accounting.ledger.status import Entry
from incrowd.client import Client
from incrowd.errors import IncrowdError
from incrowd.governance.access_list import AccessList
from incrowd.governance.grant import AccessDecision, AccessRole, User
from incrowd.workflows.certificates import read_certificate
from incrowd.workflows.query.answers import Answers
from tests.ports import free_port

PLANTED = b"PLANTED-"
VERBS = ("release", "query", "serve")
_ROWS = 20_000
_POLICY = {
    "incrowd": 1,
    "dataset": {"name": "people", "unit": {"column": "id", "max_rows": 2}},
    "columns": {
        "id": {"role": "identifier"},
        "sex": {"role": "quasi", "categories": ["f", "m"]},
        "age": {"role": "quasi", "type": "integer", "bounds": [0, 99], "hierarchy": {"intervals": [50]}},
    },
    "release": {"method": "safe", "levels": {"age": 1}, "rate": "1/2", "epsilon": 1, "delta": "1e-4"},
    "queries": {"table": "people", "open": True},
    "budget": {"epsilon": 1000, "delta": "1/10"},
}


@dataclass(frozen=True)
class Round:
    """A verb, the source that it reads, and when it is killed: after a part of its time, or of a second since it paid.

    Without a moment it runs to its end.
    """

    number: int
    verb: str
    source: str
    moment: float | None = None
    paid: bool = False


@dataclass(frozen=True)
class Scene:
    """A folder of rows, a working folder with policy and ledger, a temporary folder; and who may ask the server."""

    rows: Path
    work: Path
    scratch: Path
    token: str

    @classmethod
    def at(cls, folder: Path) -> Scene:
        """Set the scene below a folder."""
        rows, work, scratch = (folder / name for name in ("rows", "work", "scratch"))
        for each in (rows, work, scratch):
            each.mkdir()
        _plant(rows)
        (work / "policy.yaml").write_text(json.dumps(_POLICY | {"ledger": f"sqlite:///{work}/ledger.sqlite"}))
        access = AccessList.create(f"sqlite:///{work}/ledger.sqlite")
        holder = User("ann", AccessRole.ANALYST, None)
        issued = access.grant(holder, access.now() + timedelta(days=1), AccessDecision("an officer", "a test"))
        return cls(rows, work, scratch, issued.token)

    @property
    def sources(self) -> tuple[str, ...]:
        """The same rows twice: as a file of text, and as a view that is run once."""
        return f"{self.rows}/people.csv", f"{self.rows}/people.sqlite::everyone"

    @property
    def ledger(self) -> Ledger | None:
        """The ledger, if it was made before the first process was killed."""
        return Ledger.open(f"sqlite:///{self.work}/ledger.sqlite") if (self.work / "ledger.sqlite").exists() else None

    def start(self, one: Round, port: int) -> subprocess.Popen[bytes]:
        """Start the process of a round."""
        words = {
            "release": ["release", one.source, "--out", f"out-{one.number}", "--format", "csv"],
            "query": ["query", _question(one), "--epsilon", "0.5", "--data", one.source],
            "serve": ["serve", "--data", one.source, "--port", str(port), "--reply-interval", "0"],
        }[one.verb]
        command = [sys.executable, "-m", "incrowd", *words, "--policy", "policy.yaml", "--json"]
        environment = os.environ | {"TMPDIR": str(self.scratch), "INCROWD_TRACEBACK": "1"}
        output = subprocess.DEVNULL
        return subprocess.Popen(command, cwd=self.work, env=environment, stdout=output, stderr=output)

    def run(self, one: Round, takes: float = 0.0) -> float:
        """Run a round of a verb that takes so many seconds, kill it at its moment, and return how long it took."""
        port, begun, stop, before = free_port(), time.monotonic(), threading.Event(), len(charges(self))
        with self.start(one, port) as process:
            served = one.verb == "serve"
            asking = threading.Thread(
                target=self._ask if served else process.wait, args=(one, port, stop) if served else ()
            )
            asking.start()
            while one.paid and asking.is_alive() and len(charges(self)) == before:
                time.sleep(0.01)
            asking.join(None if one.moment is None else one.moment * (1.0 if one.paid else takes))
            process.kill()
            stop.set()
            asking.join()
        return time.monotonic() - begun

    def _ask(self, one: Round, port: int, stop: threading.Event) -> None:
        """Ask the server until it has answered, or is gone."""
        client = Client(f"http://127.0.0.1:{port}", self.token)
        while not stop.is_set():
            try:
                client.query(_question(one), epsilon="0.5")
            except IncrowdError:
                time.sleep(0.05)
            else:
                return


def rounds(scene: Scene, number: int, seed: int) -> list[Round]:
    """Return rounds over all verbs and sources, each with a random moment.

    >>> scene = Scene(Path("rows"), Path("work"), Path("scratch"), "")
    >>> [(one.verb, Path(one.source).name) for one in rounds(scene, 2, seed=1)]
    [('release', 'people.csv'), ('query', 'people.csv')]
    """
    chance, sources = random.Random(seed), scene.sources
    places = [(VERBS[n % 3], sources[n // 3 % 2]) for n in range(number)]
    return [Round(n, verb, source, chance.random(), n % 2 == 1) for n, (verb, source) in enumerate(places)]


def play(scene: Scene, number: int, seed: int, tell: Callable[[str], None] = lambda _: None) -> None:
    """Play so many rounds, and raise AssertionError at the first that leaves what it must not."""
    takes = {verb: scene.run(Round(-1 - n, verb, scene.sources[0])) for n, verb in enumerate(VERBS)}
    seen = dict[str, str]()
    paid, unfinished = charges(scene), check(scene, seen)
    assert (len(paid), unfinished) == (len(VERBS), set()), "each verb charges once when nobody stops it"
    for one in rounds(scene, number, seed):
        seconds = scene.run(one, takes[one.verb])
        now, left = charges(scene), check(scene, seen)
        new = {entry.body["release"] for entry in now[len(paid) :]}
        assert len(new) <= 1, f"{one}: one round charges at most once"
        assert left <= unfinished | new, f"{one}: only a killed process leaves its charge unfinished"
        tell(f"{one.number}: {one.verb} ended after {seconds:.2f} s{', charged' if new else ''}")
        paid, unfinished = now, left


def check(scene: Scene, seen: dict[str, str]) -> set[str]:
    """Raise AssertionError unless nothing is readable, the ledger is whole and every charge explained.

    `seen` gathers the digests of certificates with the ids of their releases: what a killed release had written and
    hidden, the next one sweeps away.

    A charge is explained by its conclusion, or by a certificate that names it; returned are the releases whose charges
    have neither, because their processes were killed in between.  The next query service concludes those of questions.
    """
    stored = [path for path in scene.scratch.rglob("*") if path.is_file() and path.stat().st_size]
    assert stored == [], "something was left in the temporary folder"
    betrayed = [path for path in scene.work.rglob("*") if path.is_file() and PLANTED in path.read_bytes()]
    assert betrayed == [], "an identifier can be read in the working folder"
    ledger = scene.ledger
    if ledger is None:
        return set()
    assert ledger.check().ok
    releases = [entry.body["release"] for entry in charges(scene)]
    assert len(set(releases)) == len(releases), "a release is charged twice"
    seen.update(_certificates(scene))
    assert set(seen.values()) <= set(releases), "something was released that was not charged"
    conclusions = {release: ledger.conclusions(release) for release in releases}
    named = {digest for each in conclusions.values() for digest in each if digest is not None}
    assert named <= seen.keys(), "a certificate is named that was nowhere"
    return {release for release in releases if not conclusions[release]} - set(seen.values())


def charges(scene: Scene) -> list[Entry]:
    """Return what was charged so far, the earliest first."""
    return [] if scene.ledger is None else [entry for entry in scene.ledger.entries() if entry.kind == "charge"]


def _certificates(scene: Scene) -> dict[str, str]:
    """Return the digests of all certificates there are, published, kept or still hidden, with their ids."""
    found = [kept.certificate for kept in Answers.beside(f"sqlite:///{scene.work}/ledger.sqlite").all()]
    for path in scene.work.rglob("certificate.json"):
        hidden = any(".incrowd-" in part for part in path.parts)
        with suppress(IncrowdError) if hidden else nullcontext():  # it may be half written
            found.append(read_certificate(path))
    return {certificate.digest(): certificate.id for certificate in found}


def _question(one: Round) -> str:
    return f"SELECT COUNT(*) AS n FROM people WHERE age < {one.number % 90 + 5} AND sex = 'f'"


def _plant(folder: Path) -> None:
    rows = [(f"{PLANTED.decode()}{number % 15_000:06d}", "fm"[number % 2], number % 100) for number in range(_ROWS)]
    text = "".join(f"{person},{sex},{age}\n" for person, sex, age in rows)
    (folder / "people.csv").write_text(f"id,sex,age\n{text}")
    with sqlite3.connect(folder / "people.sqlite") as base:
        base.execute("CREATE TABLE people (id TEXT, sex TEXT, age INTEGER)")
        base.executemany("INSERT INTO people VALUES (?, ?, ?)", rows)
        base.execute("CREATE VIEW everyone AS SELECT * FROM people")


def main() -> None:
    """Play as many rounds as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=7)
    told = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="incrowd-kills-") as folder:
        play(Scene.at(Path(folder)), told.rounds, told.seed, print)
    print(f"{told.rounds} rounds: nothing readable was left, the ledger is whole, every charge is explained.")


if __name__ == "__main__":
    main()
