"""Many clients, several worker processes, one budget; workers are killed under load."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.client import Client, Reply
from incrowd.errors import BudgetExceeded, ServerUnavailable
from incrowd.governance.access_list import AccessList
from incrowd.governance.audit import Audit
from incrowd.governance.grant import AccessRole, User
from incrowd.web.app import ServeOrder, open_server
from tests.floods import check_books
from tests.web.processes import PATIENCE, serving
from tests.web.serving import FAST, OFFICER, Browser

CLIENTS, WORKERS, THREADS = 32, 4, 2
AFFORDABLE, KILLED, ENOUGH = 20, 2, 6
OPTIONS = (
    "--workers",
    str(WORKERS),
    "--threads",
    str(THREADS),
    "--reply-interval",
    "0",
    "--requests-per-minute",
    "100000",
)


def policy(folder: Path, ledger: str) -> Path:
    rows = "\n".join(f"{'fm'[number % 2]},{number % 90}" for number in range(300))
    (folder / "births.csv").write_text(f"sex,age\n{rows}\n")
    content = {
        "incrowd": 1,
        "dataset": {"name": "births"},
        "source": "births.csv",
        "columns": {"sex": {"categories": ["f", "m"]}, "age": {"type": "integer", "bounds": [0, 100]}},
        "queries": {"table": "births", "open": True},
        "budget": {"epsilon": AFFORDABLE / 10},
        "ledger": ledger,
    }
    path = folder / "policy.yaml"
    path.write_text(json.dumps(content))
    return path


@dataclass
class Crowd:
    """Clients that each ask one question until it is answered or refused; workers die while they wait."""

    server: int
    lock: threading.Lock = field(default_factory=threading.Lock)
    answers: dict[str, Reply] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    dead: list[int] = field(default_factory=list)

    def ask(self, client: Client, sql: str) -> None:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                reply = client.query(sql, epsilon="0.1")
            except ServerUnavailable:
                time.sleep(0.05)
                continue
            except BudgetExceeded:
                self.refused.append(sql)
                return
            with self.lock:
                self.answers[sql] = reply
                if len(self.answers) == ENOUGH:
                    self.kill()
            return
        pytest.fail("a client was never answered")

    def kill(self) -> None:
        listed = Path(f"/proc/{self.server}/task/{self.server}/children").read_text().split()
        workers = [int(each) for each in listed if b"spawn_main" in Path(f"/proc/{each}/cmdline").read_bytes()]
        self.dead = workers[:KILLED]
        for each in self.dead:
            os.kill(each, signal.SIGKILL)


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="finds workers through /proc")
def test_a_crowd_gets_no_answer_beyond_the_budget_although_workers_are_killed(address: str, tmp_path: Path) -> None:
    path = policy(tmp_path, address)
    access = AccessList.create(address)
    holders = [User(f"analyst {number}", AccessRole.ANALYST) for number in range(8)]
    tokens = [access.grant(each, access.now() + timedelta(days=1), OFFICER).token for each in holders]
    questions = [f"SELECT COUNT(*) AS n FROM births WHERE age < {number}" for number in range(1, CLIENTS + 1)]
    with serving(path, *OPTIONS) as (place, server):
        crowd = Crowd(server)
        clients = [Client(place, token) for token in tokens]
        with ThreadPoolExecutor(CLIENTS) as pool:
            list(pool.map(lambda number: crowd.ask(clients[number % 8], questions[number]), range(CLIENTS)))
    lost = AFFORDABLE - len(crowd.answers)
    assert len(crowd.dead) == KILLED
    assert lost >= 0  # a worker that died had charged what it was about to answer
    assert len(crowd.answers) + len(crowd.refused) == CLIENTS
    assert len({reply.certificate["id"] for reply in crowd.answers.values()}) == len(crowd.answers)
    _check_books(address, crowd)
    _check_restart(path, tokens[0], crowd)
    check_books(path, {reply.certificate["id"] for reply in crowd.answers.values()}, lambda _: None)


def _check_books(address: str, crowd: Crowd) -> None:
    ledger = Ledger.open(address)
    assert ledger.standing("births").totals.spent.epsilon == Decimal(AFFORDABLE) / 10
    assert sum(entry.kind == "charge" for entry in ledger.entries()) == AFFORDABLE
    for book in (ledger, AccessList.open(address), Audit.open(address)):
        assert book.check().ok
    assert Audit.open(address).counts()["query", "answered"] >= len(crowd.answers)


def _check_restart(path: Path, token: str, crowd: Crowd) -> None:
    """After a restart the same question has the same answer and costs nothing, and a new one is still refused."""
    application = open_server(ServeOrder((str(path),), None, FAST))
    browser, headers = Browser(application), {"Authorization": f"Bearer {token}"}
    sql, before = next(iter(crowd.answers.items()))
    again = browser.post("/v1/query", json={"sql": sql, "epsilon": "0.1"}, headers=headers).json()
    assert (again["repeated"], again["cost"]["epsilon"]) == (True, "0")
    assert Reply.of(again).columns == before.columns
    new = {"sql": "SELECT COUNT(*) AS n FROM births WHERE age > 50", "epsilon": "0.1"}
    assert browser.post("/v1/query", json=new, headers=headers).status_code == 422
    application.state.close()
