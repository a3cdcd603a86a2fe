"""The ledger under fire: many threads, many processes, sudden death, no room, no rights."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from incrowd.accounting.budget import Budget
from incrowd.accounting.ledger.datasets import Declaration
from incrowd.accounting.ledger.ledger import Ledger
from incrowd.core.unit import Unit
from incrowd.errors import BudgetExceeded, LedgerUnavailable
from tests.chargers import root
from tests.ledgers import at_connection, create, pure, reopen

pytestmark = pytest.mark.long


def fresh(address: str, epsilon: str) -> Ledger:
    ledger = create(address)
    ledger.register(Declaration("births", Unit(), Budget.of(epsilon)))
    return ledger


def start(*words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.chargers", *words]
    return subprocess.Popen(command, cwd=root(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def answer(process: subprocess.Popen[str]) -> Any:
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    return json.loads(out)


def test_32_threads_never_overspend_and_never_lose_a_charge(address: str) -> None:
    ledger, together = fresh(address, "1"), Barrier(32)

    def work(_: int) -> list[bool]:
        together.wait()
        return [accepted(ledger) for _ in range(4)]

    def accepted(ledger: Ledger) -> bool:
        try:
            ledger.charge(pure("0.01"), "births", release="r")
        except BudgetExceeded:
            return False
        return True

    with ThreadPoolExecutor(32) as pool:
        outcomes = [outcome for outcomes in pool.map(work, range(32)) for outcome in outcomes]
    assert (sum(outcomes), len(outcomes)) == (100, 128)
    assert ledger.standing("births").epsilon == 1
    kinds = [entry.kind for entry in ledger.entries()]
    assert (kinds.count("charge"), kinds.count("refused")) == (100, 28)
    assert ledger.check().ok


def test_4_processes_never_overspend_and_never_lose_a_charge(address: str) -> None:
    ledger = fresh(address, "1")
    answers = [answer(process) for process in [start("charge", address, "0.01", "30") for _ in range(4)]]
    accepted = [sequence for found in answers for sequence in found["accepted"]]
    assert (len(accepted), sum(found["refused"] for found in answers)) == (100, 20)
    assert sorted(accepted) == [entry.sequence for entry in ledger.entries() if entry.kind == "charge"]
    assert ledger.standing("births").epsilon == 1
    assert ledger.check().ok


def test_a_killed_process_loses_budget_but_never_a_charge_it_was_told_of(address: str) -> None:
    ledger = fresh(address, "1")
    processes = [start("die", address, "15") for _ in range(2)]
    told = [pair for process in processes for pair in answer(process)]
    written = {str(entry.sequence): entry.anchor.hash for entry in ledger.entries() if entry.kind == "charge"}
    assert len(told) > 5
    assert all(written[sequence] == found for sequence, found in told)
    assert ledger.standing("births").epsilon * 10**20 == len(written)
    assert ledger.check().ok


def test_a_creator_that_is_killed_leaves_a_whole_ledger_or_none(sqlite: str) -> None:
    found = answer(start("make", sqlite, "30"))
    assert found["nothing"] > 0
    assert found["a ledger"] > 0


# --- no room, no rights


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users can reach, as those of pytest are not."""
    folder = Path(tempfile.mkdtemp(prefix="incrowd-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize(("file", "folder"), [(0o444, 0o755), (0o444, 0o555), (0o666, 0o555)])
def test_a_ledger_that_cannot_be_written_refuses_but_can_be_shown(open_folder: Path, file: int, folder: int) -> None:
    address = f"sqlite:///{open_folder}/ledger.sqlite"
    fresh(address, "1")
    (open_folder / "ledger.sqlite").chmod(file)
    open_folder.chmod(folder)
    found = answer(start("poor", address))
    open_folder.chmod(0o755)
    assert (found["error"], found["entries"]) == ("LedgerUnavailable", 2)
    assert "rights" in found["text"] or "right to write" in found["text"]


def test_a_file_that_may_not_grow_refuses_and_stays_sound(sqlite: str) -> None:
    ledger = fresh(sqlite, "1")
    found = answer(start("cramped", sqlite))
    assert found["error"] == "LedgerUnavailable"
    assert found["entries"] == ledger.show().head.sequence
    assert ledger.check().ok
    ledger.charge(pure("0.1"), "births", release="after there was room again")


def test_a_full_disk_refuses_and_says_so(sqlite: str) -> None:
    ledger = fresh(sqlite, "1")

    def full(session: sqlite3.Connection) -> None:
        session.execute("PRAGMA max_page_count = 1")  # SQLite takes this as: no more pages than there are

    with at_connection(full):
        with pytest.raises(LedgerUnavailable, match="the disk is full"):
            _spend_many(ledger)
        head = reopen(sqlite).show().head
    assert ledger.check(head).ok
    ledger.charge(pure("0.1"), "births", release="after there was room again")


def _spend_many(ledger: Ledger) -> None:
    for _ in range(100):
        ledger.charge(pure("1e-20"), "births", release="r")


def test_a_folder_where_nothing_can_be_made_refuses(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(LedgerUnavailable):
        Ledger.create(f"sqlite:///{tmp_path}/file/ledger.sqlite")
