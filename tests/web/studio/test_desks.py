"""The desks beside the road: each has a twin, does what its command line does, and spends and looks in no silence."""

from __future__ import annotations

import io
import json
import re
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.workflows.export.formats import PublisherInfo, exported
from incrowd.workflows.local.survey_file import load_survey
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.series.series import run_period
from tests.coins import SeededCoins
from tests.web.studio.desks import ODD, desks, leave
from tests.web.studio.visiting import Visitor, studio
from tests.workflows.series.test_series import MONTHS, POLICY, RUNNING, rows

SQL = "SELECT ward, COUNT(*) AS n FROM stays GROUP BY ward"
P = "?policy=policy.yaml"


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Visitor]:
    visitor = desks(tmp_path_factory.mktemp("desks"))
    yield visitor
    leave(visitor)


def settled(visitor: Visitor, path: str) -> Any:
    """Return the twin of a page when no work goes on behind it."""
    assert visitor.settled(path).status_code == 200
    return visitor.json(path)


def html(visitor: Visitor, path: str) -> str:
    """Return a page as it is shown."""
    reply = visitor.get(path)
    assert reply.status_code == 200, reply.text
    return reply.text


def charges(visitor: Visitor) -> int:
    ledger = Ledger.open(f"sqlite:///{visitor.folder}/.incrowd/ledger.sqlite")
    return sum(entry.kind == "charge" for entry in ledger.entries())


def looks(visitor: Visitor, book: str = ".incrowd") -> dict[str, dict[str, int]]:
    shown = Ledger.open(f"sqlite:///{visitor.folder}/{book}/ledger.sqlite").show()
    return {name: dict(counts) for name, counts in shown.looks.items()}


def test_the_board_shows_what_was_released_spent_and_left(desk: Visitor) -> None:
    twin = desk.json("/board")
    stays = next(each for book in twin["books"] for each in book["datasets"] if each["name"] == "stays")
    assert stays["budget"] == {"epsilon": "4", "delta": "1e-5"}
    assert 0 < stays["used"]["epsilon"] < 1
    first = stays["releases"][-1]
    assert (first["state"], first["folder"] in ("out", ODD)) == ("certified", True)
    assert twin["commands"][0] == "incrowd ledger show --entries --ledger sqlite:///.incrowd/ledger.sqlite"
    page = html(desk, "/board")
    assert "karate club" in page
    assert "of the budget is used" in page


def test_the_board_shows_the_periods_of_a_series_and_its_price_once(tmp_path: Path) -> None:
    told = {**POLICY, "release": RUNNING, "budget": {"epsilon": 2, "delta": "1e-5"}}
    policy = load_policy(told, folder=tmp_path)
    run_period(rows(), policy, MONTHS[0], Destination(tmp_path / "january", "csv"))
    run_period(rows(), policy, MONTHS[2], Destination(tmp_path / "march", "csv"))
    visitor = studio(tmp_path).come_in()
    ((stays,),) = [book["datasets"] for book in visitor.json("/board")["books"]]
    assert (stays["periods"]["published"], stays["periods"]["all"], stays["periods"]["missing"]) == (2, 4, [])
    assert [one["period"] for one in stays["releases"]] == [MONTHS[2], MONTHS[0]]
    assert {(one["cost"]["epsilon"], one["together"]) for one in stays["releases"]} == {("1", 4)}
    page = html(visitor, "/board")
    assert "2 of 4 periods published." in page
    assert "for all 4 releases together" in page
    assert page.count('class="published"') == 2


def test_the_board_of_an_empty_folder_and_of_a_lost_ledger_say_so(tmp_path: Path) -> None:
    visitor = studio(tmp_path).come_in()
    assert "No release yet" in visitor.get("/board").text
    (tmp_path / "broken.yaml").write_text("incrowd: 1\ndataset: 7\n")
    assert [each["file"] for each in visitor.json("/board")["unread"]] == ["broken.yaml"]


def test_a_release_is_verified_against_the_ledger_and_policy_of_its_folder(desk: Visitor) -> None:
    found = settled(desk, "/verify?release=out")
    assert (found["verification"]["verdict"], found["held"]["policy"]) == ("verified", "policy.yaml")
    assert list(found["verification"]["findings"]) == ["failed", "not known here", "assumed", "passed"]
    assert found["commands"] == ["incrowd verify out --policy policy.yaml --ledger sqlite:///.incrowd/ledger.sqlite"]
    alone = settled(desk, "/verify?release=out&against=none")
    assert alone["verification"]["verdict"] == "consistent; origin not verified"


def test_a_changed_file_fails_first(desk: Visitor) -> None:
    shutil.copytree(desk.folder / "out", desk.folder / "changed")
    with (desk.folder / "changed" / "data.csv").open("a") as file:
        file.write("1,2\n")
    found = settled(desk, "/verify?release=changed")["verification"]
    assert not found["passed"]
    assert found["findings"]["failed"][0]["about"] == "file data.csv"
    page = html(desk, "/verify?release=changed")
    assert page.index("NOT verified") < page.index("file data.csv") < page.index("Passed:")
    refused = settled(desk, "/verify?release=changed&to=ddi")["export"]
    assert not refused["ready"]
    assert "is not exported" in refused["problem"]
    assert str(desk.folder) not in html(desk, "/verify?release=changed&to=ddi")


def test_a_certificate_that_names_files_elsewhere_is_no_release(desk: Visitor) -> None:
    shutil.copytree(desk.folder / "out", desk.folder / "elsewhere")
    file = desk.folder / "elsewhere" / "certificate.json"
    file.write_text(file.read_text().replace('"name":"data.csv"', '"name":"../stays.csv"'))
    assert "outside its own folder" in settled(desk, "/verify?release=elsewhere")["problem"]
    (desk.folder / "elsewhere" / "certificate.json").write_text("[1]")
    assert "not a certificate" in settled(desk, "/verify?release=elsewhere")["problem"]
    shutil.rmtree(desk.folder / "elsewhere")


@pytest.mark.parametrize("to", ["croissant", "ddi", "dp-registry"])
def test_a_release_is_sent_in_the_forms_of_others(desk: Visitor, to: str) -> None:
    shown = settled(desk, f"/verify?release=out&to={to}&curator=City+Hospital")
    expected = exported(desk.folder / "out", to, PublisherInfo("City Hospital")).content
    assert expected.decode().startswith(shown["export"]["text"])
    assert shown["commands"][1].endswith("--curator 'City Hospital'")
    reply = desk.post("/verify/export", {"release": "out", "to": to, "curator": "City Hospital"})
    assert reply.content == expected
    assert f"out-{to}" in reply.headers["content-disposition"]


def test_a_crate_is_sent_with_every_file(desk: Visitor) -> None:
    reply = desk.post("/verify/export", {"release": "out", "to": "ro-crate"})
    names = set(zipfile.ZipFile(io.BytesIO(reply.content)).namelist())
    assert names == {"ro-crate-metadata.json", "certificate.json", "data.csv", "report.html"}
    for form in ({"to": "onnx"}, {"to": "../x"}, {"release": "../out"}, {"to": "ddi", "release": ".incrowd"}):
        assert desk.post("/verify/export", {"release": "out"} | form).status_code == 400


def test_a_question_is_priced_paid_once_and_remembered(desk: Visitor) -> None:
    given = {"policy": "policy.yaml", "sql": SQL, "epsilon": "0.5"}
    path = "/console?" + "&".join(f"{name}={value}" for name, value in given.items())
    priced = settled(desk, path)
    assert priced["price"]["cost"]["epsilon"] == "0.5"
    assert not priced["price"]["repeated"]
    assert charges(desk) == (before := charges(desk))
    form = given | {"key": priced["key"]}
    assert desk.post("/console/ask", form | {"name": "other"}).status_code == 400
    assert desk.post("/console/ask", form | {"name": "stays", "epsilon": "0.7"}).status_code == 422
    assert charges(desk) == before
    for _ in range(2):
        went = desk.post("/console/ask", form | {"name": "stays"}).headers["location"]
    reply = desk.settled(went)
    assert (reply.status_code, charges(desk)) == (303, before + 1)
    shown = desk.json(reply.headers["location"])
    assert shown["answer"]["header"] == ["ward", "n"]
    assert all("±" in line[1] or " to " in line[1] for line in shown["answer"]["lines"])
    assert "whisker" in html(desk, reply.headers["location"])
    assert shown["history"][0]["left"]["epsilon"] < "4"
    again = settled(desk, path)
    assert again["price"]["free"]
    assert desk.post("/console/ask", given | {"free": "1"}).headers["location"].endswith("&again=1")
    assert desk.post("/console/ask", given | {"free": "1", "epsilon": "0.6"}).status_code == 422
    assert charges(desk) == before + 1
    others = settled(desk, f"{path}&analyst=ann")  # who did not pay for it pays an allowance, and never in silence
    assert (others["price"]["repeated"], others["price"]["free"]) == (True, False)
    assert "charge the allowance of" in html(desk, f"{path}&analyst=ann")
    assert desk.post("/console/ask", given | {"free": "1", "analyst": "ann"}).status_code == 422


@pytest.mark.parametrize("sql", ["SELECT who FROM stays", "DROP TABLE stays", "<script>alert(1)</script>"])
def test_what_cannot_be_asked_is_refused_in_words_and_costs_nothing(desk: Visitor, sql: str) -> None:
    given = {"policy": "policy.yaml", "sql": sql, "epsilon": "0.1"}
    before = charges(desk)
    desk.settled(f"/console{P}")
    page, typing = (desk.get("/console", params=given | more).text for more in ({}, {"live": "1"}))
    assert "Not answered" in page
    assert "Not answered" not in typing  # nobody is alarmed while typing
    assert "<script>alert" not in page
    assert charges(desk) == before


def test_a_policy_without_questions_says_which_line_allows_them(tmp_path: Path) -> None:
    assert "This policy does not allow queries" in studio(tmp_path).come_in().get(f"/console{P}").text


def test_decisions_are_recorded_counted_and_told_back(desk: Visitor) -> None:
    base = {"policy": "asked/policy.yaml"}
    page = "/consent?policy=asked/policy.yaml"
    assert desk.json(page)["problem"]
    for person in ("p1", "p2", "p3"):
        went = desk.post("/consent/give", base | {"person": person, "notice": "notice 4"}).headers["location"]
        assert person not in went
    assert desk.post("/consent/withdraw", base | {"person": "p2"}).headers["location"].endswith("done=withdraw")
    status = desk.json(page)["status"]
    assert (status["consenting"], status["others"]) == (2, 1)
    (desk.folder / "more.csv").write_text("subject,event,purpose,at\np4,give,research,2025-01-01\n")
    assert desk.post("/consent/import", base | {"file": "more.csv"}).headers["location"].endswith("done=import")
    assert desk.json(page)["status"]["consenting"] == 3
    missed = desk.post("/consent/withdraw", base | {"person": "p99"})
    assert (missed.status_code, "nothing was withdrawn for a known person" in missed.text) == (200, True)
    assert "Recorded: no release" not in missed.text
    (desk.folder / "left.csv").write_text("subject,event,purpose,at\nP4,withdraw,research,2025-02-01\n")
    listed = desk.post("/consent/import?format=json", base | {"file": "left.csv"}).json()
    assert [note.partition(":")[0] for note in listed["notes"]] == ["line 2"]
    assert desk.json(page)["status"]["consenting"] == 2
    receipt = desk.post("/consent/receipt", base | {"person": "p2", "as": "json"})
    assert len(receipt.json()["recorded"]) == 2
    assert receipt.headers["content-disposition"].startswith("attachment")
    told = desk.post("/consent/subject?format=json", base | {"person": "p1"}).json()["subject"]
    assert (told["consents"], told["releases"]) == (True, [])
    assert desk.post("/consent/check?format=json", base).json()["check"]["ok"]
    for form in ({"person": ""}, {"person": "p1", "valid_to": "soon"}):
        assert desk.post("/consent/give", base | form).status_code == 400
    for file in ("../more.csv", "asked/key/consent.key", "survey.yaml", ""):
        assert desk.post("/consent/import", base | {"file": file}).status_code == 400


def test_what_the_next_release_loses_is_a_look(desk: Visitor) -> None:
    page = "/consent?policy=asked/policy.yaml"
    if desk.json(page)["status"] is None:
        desk.post("/consent/give", {"policy": "asked/policy.yaml", "person": "p1"})
    assert desk.json(page)["preview"] is None
    assert desk.post("/consent/look", {"policy": "asked/policy.yaml"}).status_code == 303
    found = settled(desk, page)["preview"]
    assert found["consenting"] >= 1
    assert found["refused"] is False
    assert "withdrawals" in (desk.folder / "asked" / ".incrowd" / "studio.json").read_text()


def test_an_estimate_comes_from_reports_alone(desk: Visitor) -> None:
    survey = load_survey(desk.folder / "survey.yaml").survey
    made = survey.randomize({"ward": ["east"] * 600 + ["west"] * 400}, SeededCoins(1))
    form = {"survey": "survey.yaml", "reports": json.dumps([[0, each["report"]] for each in made])}
    found = desk.post("/survey/estimate?format=json", form).json()["estimates"][0]
    assert found["people"] == 1000
    assert [each["value"] for each in found["estimates"]] == ["east", "west", "north"]
    assert all(each["low"] <= each["high"] for each in found["estimates"])
    for reports in (
        "",
        "[]",
        "7",
        '[["a", 1]]',
        "[[9, 1]]",
        '[[0, "<b>"]]',
        "[[0, 99]]",
        json.dumps([[0, 1]] * 20_001),
    ):
        assert desk.post("/survey/estimate", form | {"reports": reports}).status_code == 400


def test_the_playground_runs_the_script_of_surveys_and_shows_names_as_text(desk: Visitor) -> None:
    page = html(desk, "/survey?survey=survey.yaml")
    assert "Which &lt;b&gt;ward" in page
    assert "<b>ward" not in page
    held = re.search(r'<script type="application/json" id="survey">(.*?)</script>', page)
    assert held is not None
    assert json.loads(held[1])["survey"]["questions"][0]["text"] == "Which <b>ward</b>?"
    assert html(desk, "/static/randomizer.js").startswith("// Randomize answers")
    assert desk.json("/survey")["odds"][0]["true"] == "3/4"
    for epsilon in ("0", "-1", "11", "x"):
        assert desk.get(f"/survey?epsilon={epsilon}").status_code == 400


def test_a_graph_is_profiled_and_held_against_its_release_by_looks(desk: Visitor) -> None:
    page = "/graph?policy=club/policy.yaml&release=club-out"
    first = desk.json(page)
    assert (first["profile"], first["releases"]) == (None, ["club-out"])
    assert desk.post("/graph/look", {"policy": "club/policy.yaml", "release": "club-out"}).status_code == 303
    assert desk.post("/graph/assess", {"policy": "club/policy.yaml", "release": "club-out"}).status_code == 303
    found = settled(desk, page)
    assert (found["profile"]["nodes"], found["profile"]["edges"]) == (34, 78)
    assert found["after"]["kept"][0]["name"] == "triangles"
    assert looks(desk, "club/.incrowd")["karate club"] == {"profile": 1, "assess": 1}
    assert "34 nodes, 78 edges" in html(desk, page)
    assert "This policy is about a table" in html(desk, f"/graph{P}")
    assert desk.post("/graph/look", {"policy": "policy.yaml"}).status_code == 400


def test_releases_are_put_on_a_map_by_a_look(desk: Visitor) -> None:
    first = desk.json(f"/map{P}")
    assert {each["method"] for each in first["routes"]["routes"]} >= {"safe", "marginals"}
    assert set(first["releases"]) >= {"out", ODD}
    assert "<img" not in html(desk, f"/map{P}")
    before = looks(desk).get("stays", {}).get("assess", 0)
    went = desk.post("/map/look", {"policy": "policy.yaml", "is.out": "1", f"is.{ODD}": "1"}).headers["location"]
    found = settled(desk, went)
    assert looks(desk)["stays"]["assess"] == before + 1
    assert [each["name"] for each in found["found"]] == [ODD, "out"]
    assert all(0 <= each["risk"] <= 1 and 0 <= each["loss"] <= 1 for each in found["found"])
    page = html(desk, went)
    assert "Map of risk and information loss" in page
    assert "<img" not in page
    for form in ({}, {"is.nowhere": "1"}, {"is.../out": "1"}, {"is.club-out": "1"}):
        assert desk.post("/map/look", {"policy": "policy.yaml"} | form).status_code == 400


def test_a_folder_called_like_a_script_is_shown_and_never_run(desk: Visitor) -> None:
    for page in ("/board", "/verify", f"/map{P}"):
        assert "<img" not in html(desk, page)
    desk.settled(f"/verify?release={ODD}")
    page = desk.get("/verify", params={"release": ODD}).text
    assert "&lt;img src=x" in page
    assert "<img" not in page
