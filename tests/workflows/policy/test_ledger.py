"""A ledger that was there once is never made afresh."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.errors import BudgetExceeded, LedgerUnavailable
from incrowd.workflows.policy.ledger import find_book, open_book
from incrowd.workflows.policy.policy import Policy, load_policy
from incrowd.workflows.release.tables import release

PEOPLE = pa.table({"sex": ["F", "M"] * 200})


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    path = tmp_path / "policy.yaml"
    path.write_text(
        "incrowd: 1\ndataset: {name: people}\ncolumns: {sex: {categories: [F, M]}}\n"
        "release: {method: safe, rate: 0.5, epsilon: 1, delta: 1e-6}\n"
    )
    return load_policy(path)


def test_the_first_release_makes_the_ledger_and_the_second_is_refused_by_it(policy: Policy) -> None:
    release(PEOPLE, policy)
    with pytest.raises(BudgetExceeded):
        release(PEOPLE, policy)


def test_a_lost_ledger_is_not_made_again(policy: Policy) -> None:
    release(PEOPLE, policy)
    (policy.folder / ".incrowd" / "ledger.sqlite").unlink()
    with pytest.raises(LedgerUnavailable, match="restore it from a copy"):
        release(PEOPLE, policy)
    assert not (policy.folder / ".incrowd" / "ledger.sqlite").exists()


@pytest.mark.parametrize("content", [b"", b"something else", b"SQLite format 3\x00" + bytes(84)])
def test_a_file_that_cannot_be_read_as_a_ledger_never_counts_as_absent(policy: Policy, content: bytes) -> None:
    """Also where no release was charged before: the file may be a ledger that was damaged, or somebody else's."""
    file = policy.folder / ".incrowd" / "ledger.sqlite"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(content)
    with pytest.raises(LedgerUnavailable):
        find_book(policy)
    with pytest.raises(LedgerUnavailable):
        release(PEOPLE, policy)
    assert file.read_bytes() == content


def test_an_exchanged_ledger_is_found_out(policy: Policy) -> None:
    release(PEOPLE, policy)
    (policy.folder / ".incrowd" / "ledger.sqlite").unlink()
    Ledger.create(policy.ledger_address)
    with pytest.raises(LedgerUnavailable, match="another ledger"):
        release(PEOPLE, policy)


@pytest.mark.parametrize("content", ["", "{", "[]", "7"])
def test_a_damaged_mark_is_refused(policy: Policy, content: str) -> None:
    release(PEOPLE, policy)
    (policy.folder / ".incrowd" / "ledgers.json").write_text(content)
    with pytest.raises(LedgerUnavailable, match=r"ledgers\.json"):
        open_book(policy)


def test_a_policy_with_another_ledger_keeps_both(policy: Policy, tmp_path: Path) -> None:
    release(PEOPLE, policy)
    other: dict[str, Any] = {"ledger": "sqlite:///.incrowd/second.sqlite"}
    path = tmp_path / "policy.yaml"
    path.write_text(path.read_text() + f"ledger: {other['ledger']}\n")
    assert open_book(load_policy(path)).id != open_book(policy).id
