"""A ledger that was there once is never made afresh."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.errors import BudgetExceeded, LedgerUnavailable
from incrowd.workflows.policy.ledger import open_book
from incrowd.workflows.policy.policy import Policy, load_policy
from incrowd.workflows.release.publish import release

PEOPLE = pa.table({"sex": ["F", "M"] * 200})


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    path = tmp_path / "policy.yaml"
    path.write_text(
        "incrowd: 1\ndataset: {name: people}\ncolumns: {sex: {categories: [F, M]}}\n"
        "release: {method: safe, rate: 0.5, target: {epsilon: 1, delta: 1e-6}}\n"
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
