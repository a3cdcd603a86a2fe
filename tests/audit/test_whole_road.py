"""Many releases through the whole road: a policy, a ledger on disk, a charge each, a certificate each."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

import incrowd
from incrowd.accounting.ledger.ledger import Ledger
from incrowd.errors import GuaranteeBroken
from incrowd.methods.anonymity.safe import Safe
from incrowd.methods.shared.microdata import Microdata
from incrowd.workflows.policy.policy import Policy, load_policy
from tests.audit.auditing import Claim, Trials, proved_epsilon, sure_epsilon
from tests.audit.broken import NoSample, OneLess
from tests.statistics.alarm import FALSE_ALARM

ROUNDS = 60
PER_LEDGER = 30
CLAIM = Claim(2, Fraction(1, 2), 0.2)
MEMORY = Path("/dev/shm")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in memory where there is one: each charge is forced to the disk."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as path:
        yield Path(path)


def policy(folder: Path) -> Policy:
    return load_policy(
        {
            "incrowd": 1,
            "dataset": {"name": "audit", "separate": "every run is about people of its own"},
            "columns": {"cell": {"categories": ["a", "b"]}},
            "release": {
                "method": "safe",
                "k": CLAIM.k,
                "rate": CLAIM.rate,
                "delta": CLAIM.delta,
            },
            "ledger": f"sqlite:///{folder}/ledger.sqlite",
        }
    )


def published(folder: Path, rows: int, times: int) -> Iterator[int]:
    """Release a table with so many rows in cell a again and again, and yield what is published of it."""
    table, base = pa.table({"cell": pa.array(["a"] * rows + ["b"] * 3, pa.string())}), policy(folder)
    for run in range(times):
        address = f"sqlite:///{folder}/{rows}-{run // PER_LEDGER}.sqlite"
        release = incrowd.release(table, replace(base, name=f"run {run}", ledger=address))
        assert float(Fraction(release.certificate.accounting.spent.epsilon)) <= CLAIM.epsilon
        yield release.result.to_arrow()["cell"].to_pylist().count("a")


def charges(folder: Path) -> int:
    ledgers = [Ledger.open(f"sqlite:///{path}") for path in folder.glob("*-*.sqlite")]
    return sum(entry.kind == "charge" for ledger in ledgers for entry in ledger.entries())


def proved(folder: Path, rows: int, times: int) -> float:
    """What an attacker proves who sees whether cell a, of `rows` or of one fewer, is published."""
    one, other = (Trials.count(count > 0 for count in published(folder, n, times)) for n in (rows, rows - 1))
    assert charges(folder) == 2 * times
    return proved_epsilon(one, other, CLAIM.delta)


def test_the_real_release_proves_no_more_than_its_certificate_says(folder: Path) -> None:
    assert proved(folder, CLAIM.k, ROUNDS) <= CLAIM.epsilon


def test_a_copy_without_a_sample_on_the_same_road_is_caught(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Safe, "release", lambda self, table, coins: Microdata(NoSample(self).release(table, coins)))
    assert proved(folder, CLAIM.k, ROUNDS) >= sure_epsilon((1.0, 0.0), ROUNDS, CLAIM.delta) > CLAIM.epsilon


def test_a_copy_that_suppresses_too_little_does_not_get_past_the_recount(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Safe, "release", lambda self, table, coins: Microdata(OneLess(self).release(table, coins)))
    with pytest.raises(GuaranteeBroken):
        list(published(folder, 1, 20))  # each shows the one a alone with chance 1/2, or one of three b with 3/8
    assert FALSE_ALARM > (1 / 2 * 5 / 8) ** 20
