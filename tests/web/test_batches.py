"""Several questions over HTTP: shapes, numbers, limits, turns, the audit log; one charge, and the same again free."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from incrowd.governance.grant import AccessRole
from incrowd.web.settings import Settings
from tests.web.serving import SECRET, Server, server
from tests.web.test_service import BIRTHS, DEATHS, Office

ASK: dict[str, Any] = {
    "questions": [{"sql": "SELECT 1 FROM births"}, {"sql": "SELECT 2 FROM births"}],
    "epsilon": "1/2",
}
OLD = {"sql": "SELECT COUNT(*) AS n FROM births WHERE age > ?", "parameters": [{"number": "64"}]}


@pytest.fixture
def here(tmp_path: Path) -> Server:
    return server(tmp_path)


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    found = Office(tmp_path_factory.mktemp("office"))
    yield found
    found.application.state.close()


def test_several_questions_are_answered_and_logged_as_one(here: Server) -> None:
    reply = here.client.post("/v1/batch", json=ASK, headers=here.bearer(AccessRole.ANALYST))
    assert (reply.status_code, len(reply.json()["answers"])) == (200, 2)
    assert [(each.analyst, str(each.terms.epsilon)) for each in here.queries.asked] == [("ann", "1/2")] * 2
    (event,) = here.books.audit.read(0, 100)
    assert (event["action"], event["outcome"], event["about"]["questions"]) == ("query_batch", "answered", "2")
    assert "births" not in str(event)


def test_a_price_of_several_asks_nothing_and_an_auditor_asks_none(here: Server) -> None:
    headers = here.bearer(AccessRole.AUDITOR)
    assert here.client.post("/v1/batch/price", json=ASK, headers=headers).json()["cost"]["epsilon"] == "1/2"
    assert here.client.post("/v1/batch", json=ASK, headers=headers).status_code == 403
    assert here.queries.asked == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"questions": []}, "questions: "),
        ({"questions": [{"sql": "births"}] * 1001}, "questions: "),
        ({"questions": ["births"]}, "query 1: "),
        ({"questions": [{"sql": "births"}, {"sql": ""}]}, "query 2: sql: "),
        ({"questions": [{"sql": "births"}, {"sql": "births", "epsilon": 1}]}, "query 2: epsilon: "),
        ({"questions": [{"sql": "births"}, {"sql": "births ?", "parameters": [[SECRET]]}]}, "query 2: parameters: "),
        ({"questions": [{"sql": "births"}, {"sql": "SELECT ? FROM births", "parameters": []}]}, "query 2: "),
        ({"questions": [{"sql": "SELECT ? FROM births", "parameters": [{"date": "2020-02-30"}]}]}, "query 1: "),
        ({"epsilon": None}, "epsilon: "),
        ({"epsilon": "1_0"}, "epsilon: "),
        ({"error": "1"}, "error: "),
        ({"rate": "1/2"}, "rate: "),
        ({"account": "a"}, "account: "),
    ],
)
def test_what_does_not_fit_its_shape_names_the_question_and_asks_none(
    here: Server, change: dict[str, Any], told: str
) -> None:
    reply = here.client.post("/v1/batch", json=ASK | change, headers=here.bearer(AccessRole.ANALYST))
    assert (reply.status_code, reply.json()["kind"]) == (400, "InvalidParameter")
    assert reply.json()["error"].startswith(told)
    assert SECRET not in reply.text
    assert here.queries.asked == []


def test_a_batch_is_no_larger_than_any_request(tmp_path: Path) -> None:
    here = server(tmp_path, Settings(pace=0.0, size=500))
    large = ASK | {"questions": ASK["questions"] * 20}
    assert here.client.post("/v1/batch", json=large, headers=here.bearer(AccessRole.ANALYST)).status_code == 413


@pytest.mark.usefixtures("still")
def test_many_questions_count_as_many_requests(tmp_path: Path) -> None:
    here = server(tmp_path, Settings(pace=0.0, rate=4))
    headers = here.bearer(AccessRole.ANALYST)
    many = ASK | {"questions": ASK["questions"] * 40}  # 80 questions count as 5 requests
    assert here.client.post("/v1/batch/price", json=many, headers=headers).status_code == 200
    refused = here.client.post("/v1/price", json={"sql": "births", "epsilon": 1}, headers=headers)
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "30")


def post(office: Office, path: str, headers: dict[str, str], *questions: dict[str, Any], **more: str) -> Any:
    body = {"questions": list(questions), "epsilon": "0.5", **more}
    return office.browser.post(path, json=body, headers=headers)


def test_several_cost_once_and_the_same_again_nothing_and_others_see_no_trace(office: Office) -> None:
    ann, bob = (office.headers(name, AccessRole.ANALYST) for name in ("ann", "bob"))
    asked = ({"sql": BIRTHS}, OLD, {"sql": "SELECT sex, COUNT(*) AS n FROM births GROUP BY sex"})
    priced = post(office, "/v1/batch/price", bob, *asked).json()
    assert [len(each["expected"]) for each in priced["each"]] == [1, 1, 1]
    first = post(office, "/v1/batch", ann, *asked).json()
    assert (office.spent("births"), [len(each["columns"]) for each in first["answers"]]) == ("0.5", [1, 1, 2])
    assert post(office, "/v1/batch/price", bob, *asked).json() | {"left": 0} == priced | {"left": 0}, "as if new"
    again = post(office, "/v1/batch", ann, *asked).json()
    assert (again["repeated"], again["answers"], again["cost"]["epsilon"]) == (True, first["answers"], "0")
    assert post(office, "/v1/batch", bob, *asked).json()["answers"] == first["answers"]
    assert office.spent("births") == "0.5"
    number = first["certificate"]["id"]
    assert office.browser.get(f"/v1/answers/{number}", headers=ann).json()["answers"] == first["answers"]


def test_a_refused_question_is_named_and_another_dataset_does_not_exist(office: Office) -> None:
    before = office.spent("births")
    headers = office.headers("cid", AccessRole.ANALYST, ("births",))
    foreign = post(office, "/v1/batch", headers, {"sql": BIRTHS}, {"sql": DEATHS})
    unknown = post(office, "/v1/batch", headers, {"sql": BIRTHS}, {"sql": DEATHS.replace("deaths", "nothing")})
    assert (foreign.status_code, foreign.json()["error"][:9]) == (unknown.status_code, "query 2: ")
    assert foreign.json()["error"].replace("deaths", "nothing") == unknown.json()["error"]
    both = post(office, "/v1/batch", office.headers("dan", AccessRole.ANALYST), {"sql": BIRTHS}, {"sql": DEATHS})
    assert (both.status_code, "query 2: queries that are paid" in both.json()["error"]) == (422, True)
    dear = post(office, "/v1/batch", headers, {"sql": BIRTHS}, OLD, epsilon="1.5")
    assert (dear.status_code, "may cost 1" in dear.json()["error"]) == (422, True)
    assert office.spent("births") == before
