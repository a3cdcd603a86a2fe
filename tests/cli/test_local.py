"""`incrowd local` and `incrowd collect` on the command line, and a collector that is killed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from incrowd.noise.system import SystemCoins
from incrowd.workflows.collect.collector import Collector
from incrowd.workflows.collect.participant import Participant
from incrowd.workflows.local.opening import open_survey
from incrowd.workflows.local.survey_file import load_survey
from tests.cli.running import Runner
from tests.ports import free_port
from tests.web.processes import wait_for

SURVEY = """\
survey: 1
name: travel
odds: 3
questions:
  ever: {text: Did you ever?, categories: ["yes", "no"]}
"""


@pytest.fixture
def survey(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "survey.yaml").write_text(SURVEY)
    return tmp_path / "survey.yaml"


def test_a_plan_shows_the_error_beside_the_optimum(run: Runner) -> None:
    told = run("local plan --domain 100 --epsilon 1 --people 1000000 --json").json
    assert told["mechanism"] == "subset"
    assert told["total_error"] < told["optimum"] < 1.01 * told["total_error"]
    assert told["above_optimum"] < 0.02
    shown = run("local plan --domain 4 --epsilon 1 --people 1000 --delta 1e-6").out
    assert "response" in shown
    assert "shuffled" in shown


def test_open_randomize_estimate(run: Runner, survey: Path, tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_text("ever\n" + "yes\n" * 300 + "no\n" * 100)
    opened = run("local open --survey survey.yaml --out open --json").json
    assert opened["claims"][0]["kind"] == "local differential privacy"
    assert "ε ≤ 1.099" in opened["claims"][0]["facts"][0]
    assert run("verify open --ledger sqlite:///.incrowd/ledger.sqlite").out.startswith("verified")
    done = run("local randomize answers.csv --survey survey.yaml --out reports.jsonl --json").json
    assert (done["reports"], done["new"]) == (400, 400)
    found = run("local estimate reports.jsonl --survey survey.yaml --json").json["questions"][0]
    yes = sum(json.loads(line)["report"] == 0 for line in (tmp_path / "reports.jsonl").read_text().splitlines())
    assert found["estimates"][0]["estimate"] == pytest.approx(2 * yes / 400 - 0.5)
    assert "interval" in run("local estimate reports.jsonl --survey survey.yaml").out
    again = run("local randomize answers.csv --survey survey.yaml --out more.jsonl")
    assert (again.code, again.out) == (1, "")
    assert "randomized before" in again.err
    assert run("local estimate reports.jsonl --survey survey.yaml --confidence 2").code == 2
    assert run("local estimate reports.jsonl --survey survey.yaml --range ever=1:2").code == 2
    assert run("local estimate survey.yaml --survey survey.yaml").code == 2
    assert run("local open --survey missing.yaml").code == 2


def test_tokens_are_made_and_not_kept(run: Runner, survey: Path, tmp_path: Path) -> None:
    made = run("collect tokens --survey survey.yaml --count 3").out.split()
    assert len(set(made)) == 3
    assert run("collect tokens --survey survey.yaml --count 0").code == 2
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert made[0].encode() not in stored
    assert run("collect serve --survey survey.yaml --tls-key x").code == 2


def post(address: str, given: list[dict[str, Any]]) -> list[str]:
    body = json.dumps({"reports": given}).encode()
    with urlopen(Request(f"{address}/reports", body, {"content-type": "application/json"}), timeout=60) as reply:
        return list(json.load(reply)["receipts"])


@pytest.mark.parametrize("shuffled", [False, True], ids=["local", "shuffled"])
def test_a_killed_collector_keeps_what_it_acknowledged_and_links_nothing(
    shuffled: bool, survey: Path, tmp_path: Path
) -> None:
    if shuffled:
        survey.write_text(SURVEY + "shuffled: {batch: 8, delta: 1/10}\n")
    at = Collector.beside(open_survey(load_survey(survey)))
    reports = at.survey.randomize({"ever": ["yes"] * 20}, SystemCoins())
    given: list[dict[str, Any]] = [{"token": at.tokens.issue(), "report": report} for report in reports]
    port = free_port()
    command = [sys.executable, "-m", "incrowd", "collect", "serve", "--survey", str(survey), "--port", str(port)]
    with (tmp_path / "log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        address = f"http://127.0.0.1:{port}"
        try:
            wait_for(f"{address}/healthz", process)
            receipts = [post(address, [each])[0] for each in given[:19]]
            told = Participant(tmp_path / "me").send(address, {"ever": "no"}, given[19]["token"])
        finally:
            os.kill(process.pid, signal.SIGKILL)
    assert [*receipts, told] == ["received" if shuffled else "counted"] * 20
    again = Collector.beside(open_survey(load_survey(survey)))
    assert again.count == (16 if shuffled else 20)  # four of a batch that was not full are lost
    again.check()
    assert [str(each) for each in again.receive(given[:19])] == [
        "already received" if shuffled else "already counted"
    ] * 19
    if shuffled:
        pieces = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and "me" not in path.parts]
        tokens = [each["token"][:32].encode() for each in given]
        assert all(sum(token in piece for piece in pieces) == 1 for token in tokens)
        with_marks = [piece for piece in pieces if any(token in piece for token in tokens)]
        assert len(with_marks) == 1  # tokens stand in one table, without report, digest or time beside them


def test_what_a_collector_stored_is_estimated_and_exported(run: Runner, survey: Path, tmp_path: Path) -> None:
    assert run("local estimate --survey survey.yaml").code == 1
    assert run("collect export --survey survey.yaml --out reports.jsonl").code == 1
    assert not (tmp_path / ".incrowd" / "surveys").exists()
    at = Collector.beside(open_survey(load_survey(survey)))
    reports = at.survey.randomize({"ever": ["yes"] * 60}, SystemCoins())
    at.receive([{"token": at.tokens.issue(), "report": report} for report in reports])
    estimated = run("local estimate --survey survey.yaml --confidence 0.9 --json").json
    assert (estimated["questions"][0]["people"], estimated["questions"][0]["confidence"]) == (60, 0.9)
    assert run("collect export --survey survey.yaml --out reports.jsonl --json").json["reports"] == 60
    assert run("local estimate reports.jsonl --survey survey.yaml --confidence 0.9 --json").json == estimated
    lines = (tmp_path / "reports.jsonl").read_text().splitlines()
    assert all(set(json.loads(line)) == {"survey", "question", "report"} for line in lines)


def test_a_sheet_of_links_can_be_printed(run: Runner, survey: Path, tmp_path: Path) -> None:
    made = run(
        "collect tokens --survey survey.yaml --count 3 --html sheet.html --address https://survey.example/ --json"
    )
    assert made.json["links"] == 3
    sheet = tmp_path / "sheet.html"
    text = sheet.read_text()
    tokens = re.findall(r"https://survey\.example/#token=([0-9a-f]{64})<", text)
    maker = Collector.beside(open_survey(load_survey(survey))).tokens
    assert len({maker.number(token) for token in tokens}) == 3
    assert text.count("<svg") == 3
    assert sheet.stat().st_mode & 0o077 == 0
    assert run("collect tokens --survey survey.yaml --html other.html --address survey.example").code == 2
    assert not (tmp_path / "other.html").exists()


def test_a_plan_does_not_contradict_its_own_minimum(run: Runner) -> None:
    plan = run("local plan --domain 4 --epsilon 5 --people 1000 --json").json
    assert plan["optimum"] <= plan["sampled_error"]
    assert plan["total_error"] < plan["sampled_error"]
    assert f"the error of the first is {plan['sampled_error']:.4g}" in " ".join(
        run("local plan --domain 4 --epsilon 5 --people 1000").out.split()
    )
