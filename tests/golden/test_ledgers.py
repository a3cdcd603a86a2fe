from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from incrowd.errors import BudgetExceeded, SampleReused
from incrowd.store.link import VERSION, Anchor
from tests.golden.ledgers.make import FOLDER, fill
from tests.ledgers import create, pure, reopen, sampled_crowd

VERSIONS = sorted(path.stem for path in FOLDER.glob("version-*.sqlite"))


def test_there_is_a_ledger_of_this_version() -> None:
    assert f"version-{VERSION}" in VERSIONS


@pytest.mark.parametrize("version", VERSIONS)
def test_a_ledger_of_an_earlier_version_still_tells_the_same_and_goes_on(version: str, tmp_path: Path) -> None:
    shutil.copy(FOLDER / f"{version}.sqlite", tmp_path / "ledger.sqlite")
    ledger = reopen(f"sqlite:///{tmp_path}/ledger.sqlite")
    told = json.loads((FOLDER / f"{version}.json").read_text())
    assert ledger.show().to_json() == told
    assert ledger.check(Anchor.from_json(told["head"])).ok
    with pytest.raises(SampleReused):
        ledger.charge(sampled_crowd("2025"), "births", release="table 4")
    with pytest.raises(BudgetExceeded, match="is already spent"):
        ledger.charge(pure(3), "births", release="table 4")
    ledger.charge(pure("0.1"), "births", release="table 4")
    assert ledger.check(Anchor.from_json(told["head"])).ok


def test_a_ledger_tells_what_came_of_its_charges(tmp_path: Path) -> None:
    shutil.copy(FOLDER / "version-1-conclusions.sqlite", tmp_path / "ledger.sqlite")
    ledger = reopen(f"sqlite:///{tmp_path}/ledger.sqlite")
    assert [ledger.conclusions(f"table {number}") for number in (1, 2, 3)] == [("a1" * 32,), (None,), ()]


def test_the_golden_ledger_holds_every_kind_of_entry(sqlite: str) -> None:
    from incrowd.accounting.ledger.books import MEANING

    ledger = create(sqlite)
    fill(ledger)
    assert {entry.kind for entry in ledger.entries()} == {"created", *MEANING}
