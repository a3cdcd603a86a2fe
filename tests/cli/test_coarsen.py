from __future__ import annotations

from pathlib import Path

from tests.cli.running import Runner
from tests.released import release_into


def test_a_coarser_table_is_made_and_verified(run: Runner, tmp_path: Path) -> None:
    folder = release_into(tmp_path / "release")
    made = run(f"coarsen {folder.out} --policy {folder.path}/policy.yaml --levels age=3 --columns sex,age --out coarse")
    assert made.code == 0
    assert "nothing: computed from the release" in made.out
    assert (tmp_path / "coarse" / "data.csv").is_file()
    assert run(f"verify coarse --parent {folder.out} --ledger {folder.ledger}").code == 0


def test_json_holds_the_certificate(run: Runner, tmp_path: Path) -> None:
    folder = release_into(tmp_path / "release")
    found = run(f"coarsen {folder.out} --policy {folder.path}/policy.yaml --columns sex --out coarse --json").json
    assert found["certificate"]["schema"]["released"] == ["sex"]


def test_bad_levels_are_bad_input(run: Runner, tmp_path: Path) -> None:
    folder = release_into(tmp_path / "release")
    for level in ("age", "age=x", "=2", "age=0"):
        line = f"coarsen {folder.out} --policy {folder.path}/policy.yaml --levels {level} --out coarse"
        assert run(line).code == 2
