from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.running import Runner
from tests.released import Folder, release_into


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return release_into(tmp_path_factory.mktemp("made") / "release")


@pytest.fixture
def copy(made: Folder, tmp_path: Path) -> Folder:
    return made.copied(tmp_path / "copy")


def test_a_release_is_verified_and_what_cannot_be_known_is_said(run: Runner, copy: Folder) -> None:
    done = run(f"verify {copy.out} --ledger {copy.ledger}")
    assert done.code == 0
    assert done.out.startswith("verified")
    told = " ".join(done.out.split())
    for words in (
        "? not checked here signature:",
        "? assumed · recoding, levels",
        "✓ passed 2",
        "--verbose lists them",
    ):
        assert words in told


def test_verbose_lists_what_passed_too(run: Runner, copy: Folder) -> None:
    told = " ".join(run(f"verify {copy.out} --ledger {copy.ledger} --verbose").out.split())
    for words in ("✓ claim: approximate differential", "✓ ledger", "? signature", "? assumption"):
        assert words in told


def test_what_failed_stands_before_what_is_open(run: Runner, copy: Folder) -> None:
    copy.tamper(("claims", 0, "parameters", "epsilon"), lambda _: "0.5")
    told = run(f"verify {copy.out / 'certificate.json'}").out
    assert told.index("✗ failed") < told.index("? not checked here") < told.index("✓ passed")


def test_json_lists_every_finding(run: Runner, copy: Folder) -> None:
    told = run(f"verify {copy.out} --json").json
    assert told["passed"] is True
    assert {finding["verdict"] for finding in told["findings"]} == {"passed", "cannot be known here"}
    assert len(told["findings"]) > 12


def test_one_changed_byte_is_named_and_exits_with_1(run: Runner, copy: Folder) -> None:
    data = bytearray((copy.out / "data.csv").read_bytes())
    data[-2] ^= 1
    (copy.out / "data.csv").write_bytes(data)
    done = run(f"verify {copy.out}")
    assert done.code == 1
    assert done.out.startswith("NOT verified")
    assert "✗ failed" in done.out
    assert "file data.csv: " in done.out
    assert run(f"verify {copy.out} --json").json["passed"] is False


def test_one_changed_parameter_is_named(run: Runner, copy: Folder) -> None:
    copy.tamper(("claims", 0, "parameters", "epsilon"), lambda _: "0.5")
    done = run(f"verify {copy.out / 'certificate.json'}")
    assert done.code == 1
    assert "✗ failed" in done.out
    assert "claim: approximate differential" in done.out


def test_an_old_ledger_is_found_by_both_commands(run: Runner, copy: Folder, tmp_path: Path) -> None:
    from incrowd.accounting.budget import Budget
    from incrowd.accounting.ledger.ledger import Ledger
    from incrowd.workflows.release.deliver import Destination
    from incrowd.workflows.release.tables import release_to
    from tests.policies import people

    file = copy.path / ".incrowd" / "ledger.sqlite"
    shutil.copy(file, tmp_path / "backup.sqlite")
    Ledger.open(copy.ledger).grant("people", Budget.of(1, "1e-4"), "the board", "a second table")
    release_to(people(), copy.path / "policy.yaml", Destination(tmp_path / "second"))
    assert run(f"ledger check --ledger {copy.ledger} --against {tmp_path}/second/certificate.json").code == 0
    shutil.copy(tmp_path / "backup.sqlite", file)
    checked = run(f"ledger check --ledger {copy.ledger} --against {tmp_path}/second/certificate.json")
    assert checked.code == 1
    done = run(f"verify {tmp_path}/second --ledger {copy.ledger}")
    assert done.code == 1
    assert "✗ failed             ledger: " in done.out


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("verify nowhere", "cannot be read"),
        ("verify . --public-key none.pub", "certificate.json cannot be read"),
        ("verify", "Missing argument"),
    ],
)
def test_what_is_not_there_is_named(run: Runner, command: str, said: str) -> None:
    done = run(command)
    assert done.code == 2
    assert said in done.err


def test_a_key_or_ledger_that_cannot_be_read_is_named(run: Runner, copy: Folder) -> None:
    done = run(f"verify {copy.out} --ledger sqlite:///none.sqlite")
    assert done.code == 2
    assert "none.sqlite" in done.err
