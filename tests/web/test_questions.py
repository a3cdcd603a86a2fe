from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from incrowd.governance.grant import AccessRole
from incrowd.web.settings import Settings
from tests.web.serving import SECRET, Server, server
from tests.web.test_concurrency import Prompt

ASK = {"sql": "SELECT COUNT(*) FROM births", "epsilon": "1/2"}


@pytest.fixture
def here(tmp_path: Path) -> Server:
    return server(tmp_path)


def test_a_question_is_answered(here: Server) -> None:
    reply = here.client.post("/v1/query", json=ASK, headers=here.bearer(AccessRole.ANALYST))
    assert reply.status_code == 200
    assert reply.json()["answer"]["columns"][1]["values"] == [42, 7, 0]


def test_an_analyst_pays_from_his_allowance_and_a_curator_asks_for_everyone(here: Server) -> None:
    here.client.post("/v1/query", json=ASK, headers=here.bearer(AccessRole.ANALYST, "ann"))
    here.client.post("/v1/query", json=ASK, headers=here.bearer(AccessRole.CURATOR, "bob"))
    assert [each.analyst for each in here.queries.asked] == ["ann", None]


def test_amounts_arrive_exactly_as_they_were_written(here: Server) -> None:
    here.client.post("/v1/query", json=ASK | {"epsilon": 0.1, "delta": "1e-9"}, headers=here.bearer(AccessRole.ANALYST))
    (asked,) = here.queries.asked
    assert (str(asked.terms.epsilon), str(asked.terms.delta)) == ("1/10", "1/1000000000")


def test_a_price_asks_nothing(here: Server) -> None:
    reply = here.client.post("/v1/price", json=ASK, headers=here.bearer(AccessRole.AUDITOR))
    assert reply.json()["cost"]["epsilon"] == "1/2"
    assert here.queries.asked == []


def test_an_auditor_may_not_ask(here: Server) -> None:
    assert here.client.post("/v1/query", json=ASK, headers=here.bearer(AccessRole.AUDITOR)).status_code == 403
    assert here.events() == [("access", "denied")]


@pytest.mark.parametrize(
    ("sql", "status", "kind"),
    [
        ("births over budget", 422, "BudgetExceeded"),
        ("births source", 500, "ServerUnavailable"),
        ("births crash", 500, "ServerUnavailable"),
        ("nothing", 400, "InvalidParameter"),
    ],
)
def test_errors_have_a_kind_and_show_no_data(here: Server, sql: str, status: int, kind: str) -> None:
    reply = here.client.post("/v1/query", json=ASK | {"sql": sql}, headers=here.bearer(AccessRole.ANALYST))
    assert (reply.status_code, reply.json()["kind"]) == (status, kind)
    assert SECRET not in reply.text


def test_errors_that_could_depend_on_rows_are_all_the_same(here: Server) -> None:
    headers = here.bearer(AccessRole.ANALYST)
    replies = [
        here.client.post("/v1/query", json=ASK | {"sql": sql}, headers=headers)
        for sql in ("births crash", "births source")
    ]
    assert replies[0].content == replies[1].content


def test_a_token_sees_the_tables_of_its_datasets_only(here: Server) -> None:
    headers = here.bearer(AccessRole.ANALYST, datasets=("births",))
    foreign = here.client.post("/v1/query", json=ASK | {"sql": "SELECT COUNT(*) FROM deaths"}, headers=headers)
    unknown = here.client.post("/v1/query", json=ASK | {"sql": "SELECT COUNT(*) FROM nothing"}, headers=headers)
    assert (foreign.status_code, foreign.content) == (400, unknown.content)
    assert [table["name"] for table in here.client.get("/v1/schema", headers=headers).json()["tables"]] == ["births"]
    assert list(here.client.get("/v1/budget", headers=headers).json()["datasets"]) == ["births"]
    assert [each["id"] for each in here.client.get("/v1/releases", headers=headers).json()["releases"]] == ["births-1"]
    assert here.client.get("/v1/certificates/births-1", headers=headers).json()["id"] == "births-1"
    for foreign_or_unknown in ("deaths-1", "both", "nothing"):
        assert here.client.get(f"/v1/certificates/{foreign_or_unknown}", headers=headers).status_code == 404


def test_every_question_is_in_the_audit_log_also_a_refused_one_without_its_text(here: Server) -> None:
    headers = here.bearer(AccessRole.ANALYST)
    for sql in ("births", "births over budget", "births crash", "nothing"):
        here.client.post("/v1/query", json=ASK | {"sql": sql}, headers=headers)
    assert here.events() == [("query", outcome) for outcome in ("answered", "refused", "failed", "refused")]
    told = str(here.books.audit.read(0, 100))
    assert "births" not in told
    assert SECRET not in told
    assert here.books.audit.check().ok


def test_the_same_question_has_the_same_mark_in_the_audit_log(here: Server) -> None:
    headers = here.bearer(AccessRole.ANALYST)
    for sql in ("births", "births", "deaths"):
        here.client.post("/v1/query", json=ASK | {"sql": sql}, headers=headers)
    first, second, third = (each["about"]["question"] for each in here.books.audit.read(0, 100))
    assert first == second != third


def test_the_text_of_questions_is_logged_where_the_operator_says_so(tmp_path: Path) -> None:
    here = server(tmp_path, Settings(pace=0.0, show_queries=True))
    here.client.post("/v1/query", json=ASK, headers=here.bearer(AccessRole.ANALYST))
    assert here.books.audit.read(0, 100)[0]["about"]["question"] == ASK["sql"]


def test_who_cannot_be_written_down_gets_no_answer(here: Server, tmp_path: Path) -> None:
    headers = here.bearer(AccessRole.ANALYST)
    (tmp_path / "ledger.audit.sqlite").unlink()
    reply = here.client.post("/v1/query", json=ASK, headers=headers)
    assert reply.status_code == 503
    assert "42" not in reply.text
    assert str(tmp_path) not in reply.text


@pytest.mark.parametrize("sql", ["births", "births over budget", "births crash", "nothing"])
def test_answers_and_refusals_take_the_same_time(tmp_path: Path, sql: str) -> None:
    here = server(tmp_path, Settings(pace=0.4))
    headers = here.bearer(AccessRole.ANALYST)
    start = time.monotonic()
    here.client.post("/v1/query", json=ASK | {"sql": sql}, headers=headers)
    assert time.monotonic() - start >= 0.4


def test_an_answer_that_takes_too_long_stays_charged_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("incrowd.web.app.ThreadPool", Prompt)
    here = server(tmp_path, Settings(pace=0.0, longest=0.05))
    reply = here.client.post("/v1/query", json=ASK | {"sql": "births slow"}, headers=here.bearer(AccessRole.ANALYST))
    here.queries.go.set()
    assert reply.status_code == 504
    assert len(here.queries.asked) == 1


@pytest.mark.parametrize("pace", [0.0, 0.01])
def test_what_came_too_late_is_in_the_audit_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pace: float) -> None:
    monkeypatch.setattr("incrowd.web.app.ThreadPool", Prompt)
    monkeypatch.setattr("incrowd.web.answering._WRITING", 0.0)
    here = server(tmp_path, Settings(pace=pace, longest=0.05))
    reply = here.client.post("/v1/query", json=ASK | {"sql": "births slow"}, headers=here.bearer(AccessRole.ANALYST))
    here.queries.go.set()
    end = time.monotonic() + 300
    while not (told := here.books.audit.read(0, 100)) and time.monotonic() < end:
        time.sleep(0.01)
    assert (reply.status_code, [each["outcome"] for each in told]) == (504, ["answered"])


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"sql": ""},
        {"sql": "x" * 20_001},
        ASK | {"epsilon": "1e999999999"},
        ASK | {"epsilon": SECRET},
        ASK | {"epsilon": True},
        ASK | {"epsilon": "1e4000"},
        ASK | {"epsilon": "1e-4000"},
        ASK | {"epsilon": float("nan")},
        ASK | {"sql": "births \ud800"},
        ASK | {"sql": "births \x00"},
        ASK | {"unknown": 1},
        [],
    ],
)
def test_what_does_not_fit_its_shape_is_bad_input_and_is_not_repeated(here: Server, body: Any) -> None:
    content = json.dumps(body).encode()
    headers = here.bearer(AccessRole.ANALYST) | {"Content-Type": "application/json"}
    reply = here.client.post("/v1/query", content=content, headers=headers)
    assert (reply.status_code, reply.json()["kind"]) == (400, "InvalidParameter")
    assert SECRET not in reply.text
    assert here.queries.asked == []


@pytest.mark.parametrize("content", [b"", b"{", b"[" * 60_000, b"\xff\xfe", b"null", b'"x"'])
def test_a_body_that_is_no_json_is_bad_input(here: Server, content: bytes) -> None:
    headers = here.bearer(AccessRole.ANALYST) | {"Content-Type": "application/json"}
    assert here.client.post("/v1/query", content=content, headers=headers).status_code == 400


def test_explain_privacy_tells_the_price_and_asks_nothing(here: Server) -> None:
    sql = "explain privacy SELECT COUNT(*) FROM births"
    reply = here.client.post("/v1/query", json=ASK | {"sql": sql}, headers=here.bearer(AccessRole.ANALYST))
    assert reply.json()["cost"]["epsilon"] == "1/2"
    assert here.queries.asked == []


def test_parameters_are_bound_as_values(here: Server) -> None:
    sql = "SELECT COUNT(*) FROM births WHERE a > -? AND b = ? AND c = ? AND d = ? AND e = ? AND f = ?"
    values = [{"number": "-5"}, "it's", True, None, {"date": "2020-01-31"}, 1.5]
    reply = here.client.post(
        "/v1/query", json=ASK | {"sql": sql, "parameters": values}, headers=here.bearer(AccessRole.ANALYST)
    )
    assert reply.status_code == 200
    assert here.queries.asked[-1].sql == (
        "SELECT COUNT(*) FROM births WHERE a > -(-5) AND b = 'it''s' AND c = TRUE AND d = NULL "
        "AND e = CAST('2020-01-31' AS DATE) AND f = 1.5"
    )


@pytest.mark.parametrize(
    "value",
    ["NaN", "Infinity", "[1]", '{"number": "1_0"}', '{"number": "\\u0661"}', '{"number": "1\\n"}',
     '{"date": "2020-13-01"}', '{"date": "2020-01-01\\n"}',
     '{"number": "nan"}', '{"number": "1", "date": "2020-01-01"}', "1e400"],
)  # fmt: skip
def test_a_parameter_that_is_no_value_is_bad_input(here: Server, value: str) -> None:
    content = f'{{"sql": "SELECT COUNT(*) FROM births WHERE a = ?", "epsilon": 1, "parameters": [{value}]}}'
    headers = here.bearer(AccessRole.ANALYST) | {"Content-Type": "application/json"}
    assert here.client.post("/v1/query", content=content.encode(), headers=headers).status_code == 400
    assert here.queries.asked == []


def test_whole_numbers_of_other_requests_are_plain_digits(here: Server) -> None:
    auditor, owner = here.bearer(AccessRole.AUDITOR), here.bearer(AccessRole.OWNER, "olga")
    for wrong in ("1_0", "\u0661", " 1", "+1", "1.0"):
        assert here.client.get("/v1/audit", params={"limit": wrong}, headers=auditor).status_code == 400
        made = {"holder": "bob", "role": "analyst", "why": "a test", "days": wrong}
        assert here.client.post("/v1/tokens", json=made, headers=owner).status_code == 400


@pytest.mark.parametrize("number", ["1_0", "\u0661", "1\n", " 1", "+1", "0x1", "1e+2", "1.", ".5", "1/0", "inf"])
def test_amounts_are_written_as_the_published_pattern_says(here: Server, number: str) -> None:
    reply = here.client.post("/v1/query", json=ASK | {"epsilon": number}, headers=here.bearer(AccessRole.ANALYST))
    assert reply.status_code == 400
    assert here.queries.asked == []
