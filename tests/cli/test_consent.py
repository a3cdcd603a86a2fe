"""`incrowd consent`: every verb, with its exit codes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
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
    imported = run(f"consent import {tmp_path}/decisions.csv {told}")
    assert (imported.code, imported.json) == (
        0,
        {"recorded": 600, "absent": 0, "overridden": 0, "unmatched": [], "alike": [], "skipped": []},
    )
    assert run(f"consent status {told}").json["consenting"] == 600
    assert "was not in force at the run" in run(f"plan {told}").json["consent"]
    assert "secret sample" in run(f"plan --policy {policy}").out
    assert run(f"release --policy {policy} --out {tmp_path}/out --force --json").code == 0
    shutil.copy(tmp_path / "registry" / "consent.sqlite", tmp_path / "copy.sqlite")
    assert run(f"consent check --against {tmp_path}/out {told}").json["ok"]
    assert run(f"consent withdraw p7 {told}").json["decision"] == "withdraw"
    seen = run(f"consent preview {told}")
    assert (seen.code, seen.json["leavers"], seen.json["refused"]) == (1, 1, True)
    assert run(f"consent preview --policy {policy}").code == 1
    refused = run(f"release --policy {policy} --out {tmp_path}/second --force --json")
    assert (refused.code, json.loads(refused.err)["kind"]) == (1, "Refused")
    assert run(f"consent give p7 --notice 'notice 4' {told}").json["valid_to"] is None
    assert run(f"release --policy {policy} --out {tmp_path}/third --force --json").code == 0
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
    page = (tmp_path / "receipt.html").read_text(encoding="utf-8")
    assert "<h1>Receipt of your decisions</h1>" in page
    assert "You agreed that your data may be used for “research/newborns”" in page
    assert run(f"consent receipt p7 --out {tmp_path}/beleg.html --language de {told}").code == 0
    assert "Sie können jederzeit" in (tmp_path / "beleg.html").read_text(encoding="utf-8")
    assert run(f"consent receipt p7 --language pt {told}").code == 2
    assert run(f"consent receipt p7 --out {tmp_path}/receipt.html {told}").code == 2
    assert run(f"consent subject p7 {told} --json").json["consents"]
    assert run(f"consent subject p7 --token {told} --json").json["token"].startswith("ic_")
    for verb in ("status", "receipt p7", "subject p7", "subject p7 --token", "check", "withdraw p7"):
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
    for name, code, count in (("consent.fhir.json", 1, 4), ("consent.27560.json", 0, 2)):
        imported = run(f"consent import {folder / name} --policy {policy} --json")
        assert (imported.code, imported.json["recorded"]) == (code, count), "of the first, two never consented"
    assert run(f"consent status --policy {policy} --json").json["events"]["withdraw"] == 2


def consenting(run: Runner, policy: Path) -> int:
    found: int = run(f"consent status --policy {policy} --json").json["consenting"]
    return found


@pytest.fixture
def ward(run: Runner, policy: Path, tmp_path: Path) -> Path:
    """A registry in which two people of a hospital consent."""
    (tmp_path / "ward.csv").write_text(
        f"subject,event,purpose,at\nB000001,give,{PURPOSE},2026-05-01\nZoë Ölçer,give,{PURPOSE},2026-05-01\n",
        encoding="utf-8",
    )
    more = ROWS.slice(0, 2).set_column(ROWS.column_names.index("id"), "id", pa.array(["B000001", "Zoë Ölçer"]))
    pcsv.write_csv(pa.concat_tables([ROWS, more]), tmp_path / "rows" / "people.csv")
    assert run(f"consent import {tmp_path}/ward.csv --policy {policy}").code == 0
    return policy


@pytest.mark.parametrize("written", ["' B000001 '", "'B000001\u00a0'", "'Zoe\u0308 O\u0308lc\u0327er'"])
def test_surrounding_space_and_the_form_of_unicode_do_not_tell_ids_apart(run: Runner, ward: Path, written: str) -> None:
    left = run(f"consent withdraw {written} --policy {ward} --json")
    assert (left.code, left.json["matched"], left.json["note"]) == (0, True, None)
    assert consenting(run, ward) == 1


@pytest.mark.parametrize(
    "written",
    ["B00001", "b000001", "B1", "'\uff22\uff10\uff10\uff10\uff10\uff10\uff11'", "https://h.example/r4/Patient/B000001"],
)
def test_a_withdrawal_counts_for_an_id_written_alike_and_says_so(run: Runner, ward: Path, written: str) -> None:
    left = run(f"consent withdraw {written} --policy {ward} --json")
    assert (left.code, left.json["matched"]) == (1, False)
    assert "Nobody with exactly this id ever consented" in left.json["note"]
    assert "1 person" in left.json["note"]
    assert consenting(run, ward) == 1
    assert run(f"consent give B000001 --policy {ward}").code == 0
    assert consenting(run, ward) == 2


def test_a_withdrawal_that_reaches_nobody_is_recorded_and_fails(run: Runner, ward: Path) -> None:
    left = run(f"consent withdraw B000002 --policy {ward}")
    assert left.code == 1
    plain = " ".join(left.out.split())
    assert "nothing was withdrawn for a known person" in plain
    assert "recorded all the same" in plain
    assert "B000001" not in left.out + left.err
    events = run(f"consent status --policy {ward} --json").json
    assert (events["consenting"], events["events"]) == (2, {"give": 2, "withdraw": 1})


def test_a_purpose_that_nobody_consented_to_is_said_to_be_one(run: Runner, ward: Path) -> None:
    left = run(f"consent withdraw B000001 --purpose research/newborn --policy {ward} --json")
    assert left.code == 1
    assert f"Check the purpose; people consented to {PURPOSE}" in left.json["note"]
    assert consenting(run, ward) == 2
    assert run(f"consent withdraw B000001 --purpose research --policy {ward}").code == 0, "a wider one speaks of it"
    assert consenting(run, ward) == 1


def test_a_token_for_an_id_that_nobody_has_is_made_and_the_holder_is_warned(run: Runner, ward: Path) -> None:
    right, wrong = (run(f"consent subject {each} --token --policy {ward}") for each in ("B000001", "B00001"))
    assert (right.code, wrong.code) == (0, 0)
    assert ["check the ID" in " ".join(each.out.split()) for each in (right, wrong)] == [False, True]


def test_an_import_lists_the_lines_that_reach_nobody(run: Runner, ward: Path, tmp_path: Path) -> None:
    lines = [
        "subject,event,purpose,at",
        f"b000001,withdraw,{PURPOSE},2026-05-02",
        f"B9,withdraw,{PURPOSE},2026-05-02",
        f"B10,withdraw,{PURPOSE},2026-05-02",
        f"B10,give,{PURPOSE},2026-05-01",
        f"B11,refuse,{PURPOSE},2026-05-01",
    ]
    (tmp_path / "more.csv").write_text("\n".join(lines) + "\n")
    imported = run(f"consent import {tmp_path}/more.csv --policy {ward} --json")
    assert (imported.code, imported.json["recorded"]) == (1, 5)
    assert [each["place"] for each in imported.json["unmatched"]] == ["line 2", "line 3"]
    assert "line 3" in run(f"consent import {tmp_path}/more.csv --policy {ward}").out
    assert consenting(run, ward) == 1


HOSPITAL = "\ufeffSubject;event;purpose;at\r\n{}\r\n;;;\r\n"


def test_a_hospitals_spreadsheet_of_withdrawals_counts_line_by_line(run: Runner, ward: Path, tmp_path: Path) -> None:
    lines = ["B1", "Zoe\u0308 O\u0308lc\u0327er", "B000009"]
    rows = "\r\n".join(f"{one};withdraw;{PURPOSE};2026-06-01" for one in lines)
    (tmp_path / "Widerrufe.csv").write_text(HOSPITAL.format(rows), encoding="utf-8")
    imported = run(f"consent import {tmp_path}/Widerrufe.csv --policy {ward} --json")
    assert (imported.code, imported.json["recorded"]) == (1, 3)
    assert [one["place"] for one in imported.json["unmatched"]] == ["line 2", "line 4"]
    assert consenting(run, ward) == 0


def test_consents_whose_zeros_a_spreadsheet_dropped_are_listed(run: Runner, ward: Path, tmp_path: Path) -> None:
    (tmp_path / "given.csv").write_text(
        f"subject,event,purpose,at\nB1,give,{PURPOSE},2026-05-02\nC7,give,{PURPOSE},2026-05-02\n", encoding="utf-8"
    )
    imported = run(f"consent import {tmp_path}/given.csv --policy {ward} --json")
    assert imported.code == 1
    (listed,) = imported.json["unmatched"]
    assert listed["place"] == "line 2"
    assert "A consent counts for the exact id" in listed["note"]
    assert "not in the table" in run(f"consent import {tmp_path}/given.csv --policy {ward}").out


def test_the_nearest_ids_are_shown_on_a_terminal_and_nowhere_else(
    run: Runner, ward: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    piped = run(f"consent withdraw B000010 --policy {ward}")
    assert (piped.code, "B000001" in piped.out + piped.err) == (1, False)
    assert "B000001" not in run(f"consent withdraw B000010 --policy {ward} --json").out
    monkeypatch.setattr("incrowd.cli.consent._on_terminal", lambda: True)
    shown = run(f"consent withdraw B000010 --policy {ward}")
    assert "Nearest IDs in the table: B000001" in " ".join(shown.out.split())


def test_somebody_who_consented_and_has_no_row_is_told_apart(run: Runner, ward: Path) -> None:
    assert run(f"consent give D000004 --policy {ward}").code == 0
    left = run(f"consent withdraw D000004 --policy {ward} --json")
    assert (left.code, left.json["note"]) == (1, "No row of the table has this id.")


def test_a_purpose_that_nobody_ever_used_is_asked_about(run: Runner, ward: Path, tmp_path: Path) -> None:
    words = f"consent give B000001 --purpose reserch/newborns --policy {ward} --json"
    refused = run(words)
    assert refused.code == 1
    assert "Nothing was recorded" in refused.err
    (tmp_path / "typo.csv").write_text("subject,event,purpose,at\nB000001,give,reserch,2026-05-02\n", encoding="utf-8")
    assert run(f"consent import {tmp_path}/typo.csv --policy {ward}").code == 1
    assert run(f"consent status --policy {ward} --json").json["events"] == {"give": 2}
    assert run(f"{words} --new-purpose").code == 0
    assert run(words).code == 0, "somebody used it by now"
    assert run(f"consent give B000001 --purpose research --policy {ward}").code == 0, "wider than the policy's"


def test_a_decision_is_recorded_late_and_corrected(run: Runner, ward: Path) -> None:
    told = f"--policy {ward} --json"
    left = run(f"consent withdraw B000001 --at 2026-06-01 {told}").json
    assert left["at"].startswith("2026-06-01")
    assert consenting(run, ward) == 1
    missed = run(f"consent correct B000001 --of 2026-06-02 {told}")
    assert (missed.code, "nothing to correct" in missed.err) == (1, True)
    assert run(f"consent correct B000001 --of {left['at']} {told}").code == 0
    assert consenting(run, ward) == 2
    assert run(f"consent correct B000001 --of {left['at']} --decision maybe {told}").code == 2
    assert run(f"consent give B000001 --at 2999-01-01 {told}").code == 2


def test_a_withdrawal_of_the_same_day_is_not_undone_by_a_consent_whose_hour_is_known(run: Runner, ward: Path) -> None:
    told = f"--policy {ward} --json"
    assert run(f"consent give B000001 --at 2026-06-01T09:30:00Z {told}").code == 0
    assert run(f"consent withdraw B000001 --at 2026-06-01 {told}").json["at"] == "2026-06-01T23:59:59.999999Z"
    assert consenting(run, ward) == 1
    assert run(f"consent correct B000001 --of 2026-06-01 {told}").code == 1, "two decisions are of that day"
    assert run(f"consent correct B000001 --of 2026-06-01T23:59:59.999999Z {told}").code == 0
    assert consenting(run, ward) == 2


def test_a_withdrawal_that_a_later_consent_overrides_is_recorded_and_fails(run: Runner, ward: Path) -> None:
    told = f"--policy {ward} --json"
    late = run(f"consent withdraw B000001 --at 2025-01-01 {told}")
    assert (late.code, late.json["matched"]) == (1, False)
    assert "The person still consents" in late.json["note"]
    assert consenting(run, ward) == 2
    assert run(f"consent withdraw B000001 {told}").code == 0
    assert consenting(run, ward) == 1


def test_corrections_of_a_file_name_a_decision_or_nothing_is_recorded(run: Runner, ward: Path, tmp_path: Path) -> None:
    head, told = "subject,event,purpose,at,corrects", f"--policy {ward} --json"
    wrong, right = (f"B000001,void,{PURPOSE},2026-06-09,{day}" for day in ("2026-06-08", "2026-06-01"))
    left = f"B000001,withdraw,{PURPOSE},2026-06-01,"
    (tmp_path / "wrong.csv").write_text(f"{head}\n{left}\n{wrong}", encoding="utf-8")
    refused = run(f"consent import {tmp_path}/wrong.csv {told}")
    assert (refused.code, "line 3" in refused.err) == (1, True)
    assert run(f"consent status {told}").json["events"] == {"give": 2}
    (tmp_path / "right.csv").write_text(f"{head}\n{left}\n{right}", encoding="utf-8")
    assert run(f"consent import {tmp_path}/right.csv {told}").code == 0
    assert consenting(run, ward) == 2


def test_an_import_counts_what_a_later_consent_overrides_and_who_has_no_row(
    run: Runner, ward: Path, tmp_path: Path
) -> None:
    days = [("withdraw", "2025-01-01"), ("give", "2024-01-01"), ("withdraw", "2024-06-01")]
    who = ["B000001", "E5", "E5"]
    rows = [f"{one},{event},{PURPOSE},{day}" for one, (event, day) in zip(who, days, strict=True)]
    (tmp_path / "past.csv").write_text("\n".join(["subject,event,purpose,at", *rows]), encoding="utf-8")
    imported = run(f"consent import {tmp_path}/past.csv --policy {ward} --json")
    assert imported.code == 0
    assert [imported.json[name] for name in ("overridden", "absent", "unmatched")] == [1, 2, []]
    assert "before a later consent" in run(f"consent import {tmp_path}/past.csv --policy {ward}").out


def test_a_line_that_is_not_json_does_not_stop_a_file_of_resources(run: Runner, ward: Path, tmp_path: Path) -> None:
    consent = {"resourceType": "Consent", "status": "inactive", "dateTime": "2026-06-01"}
    lines = [json.dumps(consent | {"patient": {"reference": f"Patient/{one}"}}) for one in ("B000001", "X7")]
    for name in ("Consent.ndjson", "export.json"):
        (tmp_path / name).write_text("\n".join([lines[0], lines[0][:40], lines[1]]), encoding="utf-8")
        imported = run(f"consent import {tmp_path}/{name} --policy {ward} --json")
        assert (imported.code, imported.json["recorded"]) == (1, 2)
        assert imported.json["skipped"] == [{"place": "resource 2", "reason": "it holds no resource, or is not JSON"}]
        assert [one["place"] for one in imported.json["unmatched"]] == ["resource 3"]
    assert consenting(run, ward) == 1


def test_a_permit_with_limits_pauses_an_older_consent_and_not_itself(run: Runner, ward: Path, tmp_path: Path) -> None:
    provision = {"type": "permit", "purpose": [{"code": PURPOSE}], "actor": [{"role": {}}]}
    permit = {"resourceType": "Consent", "status": "active", "patient": {"reference": "Patient/B000001"}}
    (tmp_path / "limited.json").write_text(json.dumps(permit | {"dateTime": "2026-06-01", "provision": provision}))
    imported = run(f"consent import {tmp_path}/limited.json --policy {ward} --json")
    assert (imported.code, imported.json["recorded"], imported.json["unmatched"]) == (1, 0, [])
    assert "earlier consent" in imported.json["skipped"][0]["reason"]
    assert consenting(run, ward) == 1
    del provision["actor"]
    (tmp_path / "whole.json").write_text(json.dumps(permit | {"dateTime": "2026-06-01", "provision": provision}))
    assert run(f"consent import {tmp_path}/whole.json --policy {ward}").code == 0
    assert consenting(run, ward) == 2


def test_a_report_is_written_as_a_page_to_print(run: Runner, ward: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    words = f"consent subject B000001 --policy {ward} --out {page} --language fr"
    assert run(words).code == 0
    text = page.read_text(encoding="utf-8")
    assert all(part in text for part in ('lang="fr"', "B000001", "50 cas sur 100", "/consent"))
    assert "<form" not in text
    assert [run(words).code, run(f"{words.replace('fr', 'xx')}x").code] == [2, 2], "a file is never replaced"


def test_a_guardian_decides_until_the_person_comes_of_age(run: Runner, ward: Path) -> None:
    told = f"--policy {ward} --json"
    given = run(f"consent give B000001 --at 2026-06-01 --guardian mother --of-age 2026-07-01 {told}")
    assert given.code == 0
    assert consenting(run, ward) == 1, "that day has passed"
    assert run(f"consent give B000001 --of-age 2031-07-01 {told}").code == 2
