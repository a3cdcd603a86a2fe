"""A withheld column is not released and is not called an identifier: in policies, drafts, certificates and reports."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest

from incrowd.cli.main import main
from incrowd.core.schema import Role
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release_to
from incrowd.workflows.verify.verify import verify
from tests.policies import PEOPLE, changed, people, with_ledger, written

WITHHELD = changed(PEOPLE, columns__note={"role": "withheld"})


def rows() -> pa.Table:
    return people(400, seed=3).append_column("note", pa.array([f"note {number % 7}" for number in range(400)]))


def test_a_withheld_column_is_not_released_and_counts_as_unreleased() -> None:
    schema = load_policy(WITHHELD).schema
    assert "note" not in {column.name for column in schema.released}
    assert schema["note"].role is Role.WITHHELD
    assert Role.IDENTIFIER.covers(Role.WITHHELD)
    assert not Role.WITHHELD.covers(Role.IDENTIFIER)
    assert "note" not in schema.quasi


def test_certificate_and_report_say_that_it_is_withheld(tmp_path: Path) -> None:
    release_to(rows(), with_ledger(WITHHELD, tmp_path), Destination(tmp_path / "out", "csv"))
    plain = json.loads((tmp_path / "out" / "certificate.json").read_text(encoding="utf-8"))
    assert {"name": "note", "role": "withheld", "type": "text"} in plain["schema"]["columns"]
    assert "note" not in plain["schema"]["released"]
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "<td>withheld</td><td>text</td><td>not released</td>" in re.sub("<td [^>]*>", "<td>", page)
    assert "note" not in (tmp_path / "out" / "data.csv").read_text(encoding="utf-8").splitlines()[0]
    assert verify(tmp_path / "out").passed


def test_the_guarantee_is_that_of_the_policy_without_the_column() -> None:
    assert load_policy(WITHHELD).plan.guarantee == load_policy(PEOPLE).plan.guarantee


def test_the_commands_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(with_ledger(WITHHELD, tmp_path), tmp_path)
    assert main(["policy", "check", str(path)]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.split()[:1] == ["note"])
    assert "withheld" in line
    assert "not released" in line
    assert main(["plan", "--policy", str(path)]) == 0
    assert "note.missing" not in capsys.readouterr().out


def test_a_draft_withholds_what_it_cannot_describe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = people(300, seed=1).append_column(
        "remark", pa.array([f"text {number}, {number * 7}" for number in range(300)])
    )
    pa.csv.write_csv(table, tmp_path / "people.csv")
    draft = tmp_path / "policy.yaml"
    assert main(["profile", str(tmp_path / "people.csv"), "--write", str(draft)]) == 0
    capsys.readouterr()
    sections = load_policy(draft).section.columns
    assert sections["remark"].role in ("withheld", "identifier")
    assert {section.role for section in sections.values()} <= {"withheld", "identifier", "quasi", "sensitive", "plain"}
