"""Reports of releases on disk, by the command line: the public one, and the one that stays."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from incrowd.cli.main import main
from tests.certificates import POLICY, original


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data, a policy and a release."""
    from incrowd.workflows.release.deliver import Destination
    from incrowd.workflows.release.tables import release_to

    folder = tmp_path_factory.mktemp("home")
    pq.write_table(original(20_000), folder / "people.parquet")
    plain: dict[str, Any] = POLICY | {"source": "people.parquet", "budget": {"epsilon": 3, "delta": "1e-7"}}
    (folder / "policy.yaml").write_text(json.dumps(plain), encoding="utf-8")
    release_to(None, folder / "policy.yaml", Destination(folder / "out"))
    return folder


def run(*arguments: str | Path) -> int:
    return main(["report", *map(str, arguments)])


def looks(home: Path) -> int:
    from incrowd.accounting.ledger.ledger import Ledger

    entries = Ledger.open(f"sqlite:///{home}/.incrowd/ledger.sqlite").entries()
    return sum(entry.kind == "look" for entry in entries)


def test_a_report_written_again_is_the_one_that_was_released(home: Path, tmp_path: Path) -> None:
    assert run(home / "out", "--out", tmp_path / "again.html") == 0
    assert (tmp_path / "again.html").read_bytes() == (home / "out" / "report.html").read_bytes()


def test_the_public_report_goes_beside_the_certificate(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (home / "out" / "report.html").read_bytes()
    (home / "out" / "report.html").unlink()
    assert run(home / "out" / "certificate.json", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told == {"report": str(home / "out" / "report.html"), "kind": "public"}
    assert (home / "out" / "report.html").read_bytes() == before


def test_the_internal_report_goes_where_nothing_is_passed_on_and_the_look_is_recorded(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    already = looks(home)
    assert run(home / "out", "--internal", "--policy", home / "policy.yaml", "--json") == 0
    written = Path(json.loads(capsys.readouterr().out)["report"])
    assert written.parent.parent == home / ".incrowd" / "internal"
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    assert looks(home) == already + 1
    page = written.read_text(encoding="utf-8")
    assert "INTERNAL" in page
    assert "<td>20,000</td>" in page
    for column in ("age", "sex", "diagnosis"):
        assert f"Shares of {column}" in page
    assert not re.search(r"https?:|<script|url\(", page)


def test_the_original_can_be_named_and_other_rows_are_refused(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more, few, out = tmp_path / "more.parquet", tmp_path / "few.parquet", tmp_path / "inside.html"
    pq.write_table(pa.concat_tables([original(20_000), original(1)]), more)
    pq.write_table(original(500), few)
    arguments = ("--internal", "--policy", home / "policy.yaml", "--out", out, "--against")
    assert run(home / "out", *arguments, few) == 2
    assert "other data" in capsys.readouterr().err
    assert run(home / "out", *arguments, more) == 0
    assert "<td>20,001</td>" in out.read_text(encoding="utf-8")


def test_the_internal_report_may_not_lie_in_the_release(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    already, target = looks(home), home / "out" / "internal.html"
    assert run(home / "out", "--internal", "--policy", home / "policy.yaml", "--out", target) == 1
    assert "may not lie in the folder of the release" in capsys.readouterr().err
    assert not target.exists()
    assert looks(home) == already


def test_another_policy_is_refused_before_a_row_is_read(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = POLICY | {"source": str(home / "people.parquet"), "dataset": {"name": "others"}}
    (tmp_path / "other.yaml").write_text(json.dumps(other), encoding="utf-8")
    assert run(home / "out", "--internal", "--policy", tmp_path / "other.yaml") == 1
    assert "not the policy" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ("--internal", "--internal needs --policy"),
        ("--against people.parquet", "--internal"),
        ("--out {home}/policy.yaml/report.html", "could not be written"),
        ("--out {home}/policy.yaml", "nothing is overwritten"),
    ],
)
def test_bad_input_is_one_message_and_exit_2(
    home: Path, capsys: pytest.CaptureFixture[str], arguments: str, why: str
) -> None:
    assert run(home / "out", *arguments.format(home=home).split()) == 2
    assert why in capsys.readouterr().err


def test_something_else_than_a_certificate_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "certificate.json").write_text("[]", encoding="utf-8")
    assert run(tmp_path) == 2


def test_a_report_of_a_certificate_alone_does_without_the_histogram(home: Path, tmp_path: Path) -> None:
    text = (home / "out" / "certificate.json").read_text(encoding="utf-8")
    (tmp_path / "certificate.json").write_text(text, encoding="utf-8")
    assert run(tmp_path) == 0
    assert "Histogram" not in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert run(tmp_path, "--internal", "--policy", home / "policy.yaml") == 2


def test_a_file_name_in_a_certificate_cannot_lead_out_of_its_folder(home: Path, tmp_path: Path) -> None:
    plain = json.loads((home / "out" / "certificate.json").read_text(encoding="utf-8"))
    plain["outputs"][0]["name"] = "../data.parquet"
    (tmp_path / "in").mkdir()
    (tmp_path / "data.parquet").write_bytes((home / "out" / "data.parquet").read_bytes())
    (tmp_path / "in" / "certificate.json").write_text(json.dumps(plain), encoding="utf-8")
    assert run(tmp_path / "in") == 0
    assert "Histogram" not in (tmp_path / "in" / "report.html").read_text(encoding="utf-8")
