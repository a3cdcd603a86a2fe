"""Values outside what is declared are counted for the data holder, and hold back nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.cli.main import main
from incrowd.engines.local.engine import LOCAL
from incrowd.engines.readers.sources import open_source
from incrowd.workflows.plan.outside import OutsideCounter, outside_of
from incrowd.workflows.policy.policy import load_policy

COLUMNS: dict[str, Any] = {
    "born": {"role": "quasi", "type": "date", "bounds": ["2024-01-01", "2025-12-31"], "hierarchy": {"dates": ["year"]}},
    "pay": {"type": "integer", "bounds": [0, 99], "hierarchy": {"intervals": [10]}},
    "ward": {"categories": ["east", "west"]},
}
ROWS = pa.table(
    {
        "born": ["1940-05-01"] * 7 + ["2031-01-01", "2024-06-01", ""],
        "pay": ["5"] * 8 + ["100", "-1"],
        "ward": ["east"] * 9 + ["Ost"],
    }
)


def policy(folder: Path, **more: Any) -> dict[str, Any]:
    columns = {name: {**column, **more.get(name, {})} for name, column in COLUMNS.items()}
    release = {"method": "private-histogram", "columns": [*COLUMNS], "levels": {"born": 1, "pay": 1}, "epsilon": 9}
    return {
        "incrowd": 1,
        "dataset": {"name": "births"},
        "columns": columns,
        "release": release,
        "ledger": f"sqlite:///{folder}/ledger.sqlite",
    }


def sentences(folder: Path, **more: Any) -> list[str]:
    return [each.sentence for each in outside_of(load_policy(policy(folder, **more)), open_source(ROWS), LOCAL)]


def test_each_column_says_how_many_and_what_becomes_of_them(tmp_path: Path) -> None:
    born, *others = sentences(tmp_path)
    assert born.startswith("8 of 9 values of born lie outside the declared bounds and will be published as ")
    assert born.endswith("'2024 or earlier' or '2025 or later'.")
    assert others == [
        "2 of 10 values of pay lie outside the declared bounds and will be published as '< 10' or '>= 90'.",
        "1 of 10 values of ward lies outside the declared categories and will be published as 'other'.",
    ]


def test_the_rule_of_a_column_is_said(tmp_path: Path) -> None:
    found = sentences(tmp_path, born={"outside": "drop"}, pay={"outside": "other"}, ward={"outside": "drop"})
    assert [text.rpartition(" and ")[2] for text in found] == [
        "their rows will be suppressed.",
        "will be published as 'other'.",
        "its row will be suppressed.",
    ]


def test_counts_of_parts_add_up() -> None:
    columns = load_policy(policy(Path())).schema.columns
    whole, first, second = (OutsideCounter(columns) for _ in range(3))
    (batch,) = ROWS.to_batches()
    whole.add(batch)
    first.add(batch.slice(0, 4))
    second.add(batch.slice(4))
    first.merge(second)
    assert first.counts == whole.counts


def files(folder: Path) -> list[str]:
    pyarrow.csv.write_csv(ROWS, folder / "rows.csv")
    (folder / "policy.yaml").write_text(json.dumps(policy(folder)), encoding="utf-8")
    return ["--policy", str(folder / "policy.yaml"), str(folder / "rows.csv")]


def test_plan_tells_the_holder_and_the_release_tells_nobody(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = files(tmp_path)
    assert main(["plan", *words]) == 0
    assert "8 of 9 values of born lie outside" in " ".join(capsys.readouterr().out.split())
    assert main(["plan", *words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["allowed"]
    assert [(each["column"], each["outside"]) for each in found["outside"]] == [("born", 8), ("pay", 2), ("ward", 1)]
    assert main(["release", *words, "--out", str(tmp_path / "out"), "--format", "csv"]) == 0
    assert "outside the declared" not in capsys.readouterr().out
    public = "".join(each.read_text(encoding="utf-8") for each in (tmp_path / "out").iterdir())
    assert "outside the declared" not in public
    assert "2024 or earlier" in (tmp_path / "out" / "data.csv").read_text(encoding="utf-8")
    assert main(["plan", *words]) == 1
    looks = [entry for entry in Ledger.open(f"sqlite:///{tmp_path}/ledger.sqlite").entries() if entry.kind == "look"]
    assert [entry.body["verb"] for entry in looks] == ["plan"] * 3


def test_profile_tells_it_under_a_policy_and_of_a_draft(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = files(tmp_path)
    assert main(["profile", *words]) == 0
    assert "8 of 9 values of born lie outside" in " ".join(capsys.readouterr().out.split())
    days = pa.table({"seen": ["1850-02-03"] * 9 + ["2020-01-01"], "sex": ["F", "M"] * 5})
    pyarrow.csv.write_csv(days, tmp_path / "old.csv")
    assert main(["profile", str(tmp_path / "old.csv"), "--write", str(tmp_path / "draft.yaml"), "--for", "counts"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "9 of 10 values of seen lie outside the declared bounds and will be published as '1900" in told
