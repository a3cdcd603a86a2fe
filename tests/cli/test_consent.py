"""`incrowd consent`: every verb, with its exit codes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow.csv as pcsv
import pytest

from tests.cli.running import Runner
from tests.consents import FORM, PURPOSE, consented, known_people
from tests.policies import changed, written
from tests.surveys import TRAVEL

ROWS = known_people()


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    (tmp_path / "rows").mkdir()
    pcsv.write_csv(ROWS, tmp_path / "rows" / "people.csv")
    made = consented(changed(FORM, source="../rows/people.csv"), tmp_path)
    decisions = ["subject,event,purpose,at", *(f"{each},give,research,2026-05-01" for each in ROWS["id"].to_pylist())]
    (tmp_path / "decisions.csv").write_text("\n".join(decisions) + "\n")
    return made.policy.folder / "policy.yaml"


def test_decisions_are_imported_counted_released_previewed_and_checked(
    run: Runner, policy: Path, tmp_path: Path
) -> None:
    told = f"--policy {policy} --json"
    assert run(f"consent import {tmp_path}/decisions.csv {told}").json == {"recorded": 600}
    assert run(f"consent status {told}").json["consenting"] == 600
    assert "did not stand at the run" in run(f"plan {told}").json["consent"]
    assert "secret sample" in run(f"plan --policy {policy}").out
    assert run(f"release --policy {policy} --out {tmp_path}/out --anyway --json").code == 0
    shutil.copy(tmp_path / "registry" / "consent.sqlite", tmp_path / "copy.sqlite")
    assert run(f"consent check --against {tmp_path}/out {told}").json["ok"]
    assert run(f"consent withdraw p7 {told}").json["decision"] == "withdraw"
    seen = run(f"consent preview {told}")
    assert (seen.code, seen.json["leavers"], seen.json["refused"]) == (1, 1, True)
    assert run(f"consent preview --policy {policy}").code == 1
    refused = run(f"release --policy {policy} --out {tmp_path}/second --anyway --json")
    assert (refused.code, json.loads(refused.err)["kind"]) == (1, "Refused")
    assert run(f"consent give p7 --notice 'notice 4' {told}").json["valid_to"] is None
    assert run(f"release --policy {policy} --out {tmp_path}/third --anyway --json").code == 0
    shutil.copy(tmp_path / "copy.sqlite", tmp_path / "registry" / "consent.sqlite")
    restored = run(f"consent check --against {tmp_path}/third {told}")
    assert (restored.code, restored.json["ok"]) == (1, False)
    assert "restored" in restored.json["finding"]


def test_tokens_of_a_survey_go_to_people_who_consent(run: Runner, policy: Path, tmp_path: Path) -> None:
    run(f"consent give p7 --policy {policy}")
    (tmp_path / "survey").mkdir()
    places = {"registry": "../registry/consent.sqlite", "key": "../key/consent.key"}
    told = TRAVEL | {"purpose": PURPOSE, "consent": places}
    survey = written(told, tmp_path / "survey", "survey.yaml")
    (tmp_path / "people.txt").write_text("p6\np7\n")
    assert run(f"collect tokens --survey {survey}").code == 1
    assert run(f"collect tokens --survey {survey} --for {tmp_path}/nobody.txt").code == 2
    assert not (tmp_path / "survey" / ".incrowd").exists()
    made = run(f"collect tokens --survey {survey} --for {tmp_path}/people.txt").out.split()
    assert (made[0], len(made), len(made[1])) == ("p7", 2, 64)
    assert list(run(f"collect tokens --survey {survey} --for {tmp_path}/people.txt --json").json["tokens"]) == ["p7"]


def test_somebody_gets_a_receipt_an_account_and_a_token(run: Runner, policy: Path, tmp_path: Path) -> None:
    told = f"--policy {policy}"
    run(f"consent give p7 --valid-to 2999-01-01 {told}")
    receipt = run(f"consent receipt p7 --out {tmp_path}/receipt.html {told} --json").json
    assert [each["events"][0]["event_state"] for each in receipt["consent_records"]] == ["given"]
    assert "<h1>Receipt of consent</h1>" in (tmp_path / "receipt.html").read_text()
    assert run(f"consent receipt p7 --out {tmp_path}/receipt.html {told}").code == 2
    assert run(f"consent subject p7 {told} --json").json["consents"]
    assert run(f"consent subject p7 --token {told} --json").json["token"].startswith("ic_")
    for verb in ("status", "receipt p7", "subject p7", "subject p7 --token", "check", "withdraw p8"):
        assert run(f"consent {verb} {told}").code == 0


def test_mistakes_cost_nothing(run: Runner, policy: Path, tmp_path: Path) -> None:
    told = f"--policy {policy}"
    (tmp_path / "wrong.csv").write_text("subject,event,purpose,at\np1,give,research,2026-05-01\np2,agree,x,y\n")
    (tmp_path / "late.csv").write_text("subject,event,purpose,at\np1,give,research,2999-05-01\n")
    (tmp_path / "wrong.json").write_text("{")
    for line in (
        f"consent import {tmp_path}/wrong.csv {told}",
        f"consent import {tmp_path}/late.csv {told}",
        f"consent import {tmp_path}/wrong.json {told}",
        f"consent import {tmp_path}/nowhere.csv {told}",
        f"consent import {tmp_path}/wrong.csv --format xml {told}",
        f"consent give p1 --purpose '' {told}",
        f"consent give p1 --valid-to yesterday {told}",
        f"consent check --against {tmp_path}/nowhere {told}",
    ):
        assert run(line).code == 2, line
    assert run(f"consent status {told} --json").json["events"] == {}


def test_records_of_both_standards_are_imported(run: Runner, policy: Path) -> None:
    folder = Path(__file__).parent.parent / "governance" / "consent" / "fixtures"
    for name, count in (("consent.fhir.json", 4), ("consent.27560.json", 2)):
        assert run(f"consent import {folder / name} --policy {policy} --json").json == {"recorded": count}
    assert run(f"consent status --policy {policy} --json").json["events"]["withdraw"] == 2
