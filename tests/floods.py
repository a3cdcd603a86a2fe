"""Many clients for minutes on end, while workers are killed without warning; and what the books say afterwards.

    python -m tests.floods [--clients 64] [--seconds 600] [--workers 2] [--every 5] [--seed 7] [--ledger ADDRESS]

Clients ask new questions and repeat old ones, some of them the same at the same time; every few seconds a worker is
killed with SIGKILL and another takes its place.  In the end nothing is overspent, and every charge has an answer that
was kept or an entry that nothing came of it.  What must hold holds at every moment, so the verdict does not depend on
the machine or its load.  The last line is the verdict; the exit code is 0 if all is accounted for, else 1.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.client import Client
from incrowd.errors import BudgetExceeded, ServerUnavailable
from incrowd.governance.access_list import AccessList
from incrowd.governance.grant import AccessDecision, AccessRole, User
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.query.answers import Answers
from incrowd.workflows.query.service import open_queries
from tests.web.processes import serving

BUDGET, EACH = 150, "0.01"
_PEOPLE, ANALYSTS = 2000, 8


@dataclass
class Flood:
    """Clients of one server, what they were told, and how many workers were killed under them."""

    address: str
    tokens: list[str]
    end: float
    seed: int
    lock: threading.Lock = field(default_factory=threading.Lock)
    certificates: set[str] = field(default_factory=set)
    answered: int = 0
    refused: int = 0
    unanswered: int = 0
    killed: int = 0

    def ask(self, number: int) -> None:
        """Ask until the time is over; every third question is one that others ask, too."""
        chance, client = random.Random(f"{self.seed} {number}"), Client(self.address, self.tokens[number % ANALYSTS])
        while time.monotonic() < self.end:
            limit = chance.randrange(5) if chance.random() < 1 / 3 else chance.randrange(10**6)
            try:
                reply = client.query(
                    f"SELECT COUNT(*) AS n FROM people WHERE age < 50 AND {limit} = {limit}", epsilon=EACH
                )
            except ServerUnavailable:
                with self.lock:
                    self.unanswered += 1
                time.sleep(0.05)
            except BudgetExceeded:
                with self.lock:
                    self.refused += 1
            else:
                with self.lock:
                    self.answered += 1
                    self.certificates.add(reply.certificate["id"])

    def kill(self, server: int, every: float) -> None:
        """Kill one worker after the other."""
        chance = random.Random(self.seed)
        while time.monotonic() + every < self.end:
            time.sleep(every)
            workers = workers_of(server)
            if workers:
                with suppress(ProcessLookupError):
                    os.kill(chance.choice(workers), signal.SIGKILL)
                    self.killed += 1


def workers_of(server: int) -> list[int]:
    """Return the worker processes of a server; Linux lists them."""
    listed = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    found = []
    for each in listed:
        with suppress(OSError):
            if b"spawn_main" in Path(f"/proc/{each}/cmdline").read_bytes():
                found.append(int(each))
    return found


def policy(folder: Path, ledger: str | None = None) -> Path:
    """Write rows and a policy whose ledger is beside it, or at an address."""
    rows = "".join(f"{place // 2},{'fm'[place % 2]},{place % 90}\n" for place in range(_PEOPLE))
    (folder / "people.csv").write_text(f"id,sex,age\n{rows}")
    content = {
        "incrowd": 1,
        "dataset": {"name": "people", "unit": {"column": "id", "max_rows": 2}},
        "source": "people.csv",
        "columns": {
            "id": {"role": "identifier"},
            "sex": {"categories": ["f", "m"]},
            "age": {"type": "integer", "bounds": [0, 99]},
        },
        "queries": {"table": "people", "open": True},
        "budget": {"epsilon": BUDGET},
    } | ({} if ledger is None else {"ledger": ledger})
    path = folder / "policy.yaml"
    path.write_text(json.dumps(content))
    return path


def check_books(file: Path, certificates: set[str], tell: Callable[[str], None] = print) -> None:
    """Open a service, which concludes what the dead left open, and raise AssertionError unless all is accounted for."""
    loaded = load_policy(file)
    with open_queries([loaded]):
        pass
    ledger, answers = Ledger.open(loaded.ledger_address), Answers.beside(loaded.ledger_address)
    assert ledger.check().ok, "the ledger is damaged"
    charges = [entry for entry in ledger.entries() if entry.kind == "charge"]
    names = [entry.body["release"] for entry in charges]
    assert len(set(names)) == len(names), "a release is charged twice"
    spent = sum((entry.charged[0].epsilon for entry in charges), Decimal(0))
    standing = ledger.standing(loaded.name)
    assert standing.totals.spent.epsilon == spent, "the total is not the sum of the charges"
    assert standing.terms.budget is not None, "the budget is lost"
    assert spent <= standing.terms.budget.limit.epsilon, "more was spent than there was"
    kept = {each.certificate.id: each.certificate.digest() for each in answers.all()}
    assert certificates <= kept.keys(), "somebody has an answer that was not kept"
    assert set(kept) <= set(names), "something was answered that was not charged"
    nothing = 0
    for name in names:
        conclusions = ledger.conclusions(name)
        assert conclusions, f"nobody said what came of {name}"
        assert conclusions == ((kept[name],) if name in kept else (None,)), f"{name} is concluded wrongly"
        nothing += name not in kept
    tell(f"{len(names)} charges, {len(kept)} answers kept, {nothing} of which nothing came; {spent} spent")


def flooded(file: Path, told: argparse.Namespace) -> Flood:
    """Flood a server with questions, kill its workers, and return what became of it."""
    access = AccessList.create(load_policy(file).ledger_address)
    end = access.now() + timedelta(days=1)
    holders = [User(f"analyst {number}", AccessRole.ANALYST) for number in range(ANALYSTS)]
    tokens = [access.grant(each, end, AccessDecision("an officer", "a test")).token for each in holders]
    options = ("--workers", str(told.workers), "--reply-interval", "0", "--requests-per-minute", "1000000")
    with serving(file, *options) as (address, server):
        flood = Flood(address, tokens, time.monotonic() + told.seconds, told.seed)
        with ThreadPoolExecutor(told.clients + 1) as pool:
            pool.submit(flood.kill, server, told.every)
            for done in [pool.submit(flood.ask, number) for number in range(told.clients)]:
                done.result()
    return flood


def main() -> int:
    """Flood a server for as long as the command line says, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("clients", 64), ("workers", 2), ("seed", 7)):
        parser.add_argument(f"--{name}", type=int, default=default)
    for name, value in (("seconds", 600.0), ("every", 5.0)):
        parser.add_argument(f"--{name}", type=float, default=value)
    parser.add_argument("--ledger", help="an empty database, such as postgresql://USER@HOST/DATABASE")
    told = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="incrowd-floods-") as folder:
        file = policy(Path(folder), told.ledger)
        flood = flooded(file, told)
        print(f"{told.clients} clients for {told.seconds:g} s, {told.workers} workers, {flood.killed} times one killed")
        print(f"{flood.answered} replies, {flood.refused} beyond the budget, {flood.unanswered} without a reply")
        try:
            check_books(file, flood.certificates)
        except AssertionError as problem:
            print(f"FAILED: {problem}")
            return 1
    print("PASSED: nothing is overspent, and every charge has a kept answer or an entry that nothing came of it")
    return 0


if __name__ == "__main__":
    sys.exit(main())
