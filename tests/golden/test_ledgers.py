from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from incrowd.errors import BudgetExceeded, SampleReused
from incrowd.store.chain_entry import VERSION, Anchor
from tests.golden.ledgers.make import FOLDER, fill
from tests.ledgers import create, pure, reopen, sampled_crowd

GOLDEN = FOLDER / f"version-{VERSION}.sqlite"


def test_the_golden_ledger_says_the_same_and_goes_on(tmp_path: Path) -> None:
    shutil.copy(GOLDEN, tmp_path / "ledger.sqlite")
    ledger = reopen(f"sqlite:///{tmp_path}/ledger.sqlite")
    expected = json.loads(GOLDEN.with_suffix(".json").read_text())
    assert ledger.show().to_json() == expected
    assert ledger.check(Anchor.from_json(expected["head"])).ok
    with pytest.raises(SampleReused):
        ledger.charge(sampled_crowd("2025"), "births", release="table 4")
    with pytest.raises(BudgetExceeded, match="remains"):
        ledger.charge(pure(3), "births", release="table 4")
    ledger.charge(pure("0.1"), "births", release="table 4")
    assert ledger.check(Anchor.from_json(expected["head"])).ok


def test_a_ledger_tells_what_came_of_its_charges(tmp_path: Path) -> None:
    shutil.copy(GOLDEN, tmp_path / "ledger.sqlite")
    ledger = reopen(f"sqlite:///{tmp_path}/ledger.sqlite")
    assert [ledger.conclusions(f"table {number}") for number in (1, 2, 3)] == [("a1" * 32,), (None,), ()]


def test_the_golden_ledger_holds_every_kind_of_entry(sqlite: str) -> None:
    from incrowd.accounting.ledger.books import MEANING

    ledger = create(sqlite)
    fill(ledger)
    assert {entry.kind for entry in ledger.entries()} == {"created", *MEANING}
