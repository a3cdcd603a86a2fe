"""`scripts/bench compare`: two runs of the benches become a list of ratios, and an exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import comparison


def run_of(folder: Path, name: str, floor: float, **seconds: float) -> str:
    rows = [{"work": work, "ours": ours, "beside": None} for work, ours in seconds.items()]
    (folder / name).write_text(json.dumps({"floor": floor, "rows": rows}))
    return str(folder / name)


def test_every_work_is_shown_and_a_slower_one_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = run_of(tmp_path, "old.json", 1.0, release=2.0, verify=1.0)
    assert comparison.main(old, run_of(tmp_path, "new.json", 2.0, release=4.0, verify=2.2)) == 0  # a slower machine
    assert [line.split() for line in capsys.readouterr().out.splitlines()[:2]] == [
        ["1.00", "times", "as", "long", "release"],
        ["1.10", "times", "as", "long", "verify"],
    ]
    assert comparison.main(old, run_of(tmp_path, "slow.json", 1.0, release=2.4, verify=1.0)) == 1
    assert comparison.main(old, run_of(tmp_path, "less.json", 1.0, release=2.0)) == 1
    assert "not measured  verify" in capsys.readouterr().out
