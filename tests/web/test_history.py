"""What the caller asked, and nobody else learns: texts, costs, what is left, pages, and answers again for nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from incrowd.accounting.budget import Allowance
from incrowd.accounting.ledger.ledger import Ledger
from incrowd.engines.sql.duckdb import Warehouse
from incrowd.errors import SourceUnavailable, SourceUnreadable
from incrowd.governance.grant import AccessRole
from tests.web.serving import Server, server
from tests.web.test_service import BIRTHS, DEATHS, Office

Headers = dict[str, str]


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    found = Office(tmp_path, readers=["rita"])
    yield found
    found.application.state.close()


@pytest.fixture
def here(tmp_path: Path) -> Server:
    return server(tmp_path)


def history(office: Office, headers: Headers, **wanted: Any) -> Any:
    return office.browser.get("/v1/history", params=wanted, headers=headers).json()


def ids(office: Office, headers: Headers, **wanted: Any) -> list[str]:
    return [each["id"] for each in history(office, headers, **wanted)["history"]]


def kept(office: Office, headers: Headers, number: str) -> tuple[int, Any]:
    reply = office.browser.get(f"/v1/answers/{number}", headers=headers)
    return reply.status_code, reply.json()


def test_a_history_tells_text_cost_and_what_is_left_and_gives_the_answer_again(office: Office) -> None:
    ann = office.headers("ann", AccessRole.ANALYST)
    first = office.ask(ann, BIRTHS, "1/4")[1]
    second = office.ask(ann, "SELECT sex, COUNT(*) AS n FROM births GROUP BY sex", "1/2")[1]
    office.ask(ann, BIRTHS, "1/4")  # again, for nothing
    told = history(office, ann)
    late, early = told["history"]
    assert [late["id"], early["id"]] == [second["certificate"]["id"], first["certificate"]["id"]]
    assert (early["cost"], early["spent"]) == ({"births": {"epsilon": "0.25", "delta": "0"}},) * 2
    assert (late["spent"]["births"]["epsilon"], late["left"]["epsilon"]) == ("0.75", "4.25")
    assert (early["questions"], late["columns"]) == ([BIRTHS], ["sex", "n", "n_low", "n_high"])
    assert (late["own"], late["repeated"], late["state"], told["next"]) == (True, False, "answered", None)
    assert told["datasets"]["births"]["spent"]["epsilon"] == "0.75"
    status, again = kept(office, ann, second["certificate"]["id"])
    assert (status, again["answer"], again["cost"]["epsilon"]) == (200, second["answer"], "0")
    assert office.spent("births") == "0.75"


def test_pages_follow_one_another(office: Office) -> None:
    ann = office.headers("ann", AccessRole.ANALYST)
    asked = [office.ask(ann, BIRTHS, f"1/{each}")[1]["certificate"]["id"] for each in (8, 9, 10)]
    page = history(office, ann, limit=2)
    assert [each["id"] for each in page["history"]] == [asked[2], asked[1]]
    rest = history(office, ann, limit=2, before=page["next"])
    assert ([each["id"] for each in rest["history"]], rest["next"]) == ([asked[0]], None)


def test_others_see_neither_text_nor_answer_unless_the_policy_names_them_or_they_paid(office: Office) -> None:
    ann, bob, rita = (office.headers(name, AccessRole.ANALYST) for name in ("ann", "bob", "rita"))
    carl, eve = office.headers("carl", AccessRole.CURATOR), office.headers("eve", AccessRole.AUDITOR)
    own = office.ask(ann, BIRTHS)[1]["certificate"]["id"]
    assert [ids(office, each, others=True) for each in (ann, bob, rita, carl, eve)] == [[own], [], [own], [own], [own]]
    assert [ids(office, each) for each in (ann, bob, rita, carl, eve)] == [[own], [], [], [], []]
    (seen,) = history(office, rita, others=True)["history"]
    assert (seen["own"], seen["spent"], "ann" in str(seen)) == (False, {}, False)
    assert kept(office, bob, own) == kept(office, bob, "no-such-release")
    assert [kept(office, each, own)[0] for each in (ann, bob, rita, carl, eve)] == [200, 404, 404, 404, 403]
    office.ask(bob, BIRTHS)
    (paid,) = history(office, bob)["history"]
    assert (paid["id"], paid["repeated"], paid["own"], paid["left"]) == (own, True, True, None)
    assert (kept(office, bob, own)[0], office.spent("births")) == (200, "1")
    assert ids(office, ann) == [own]
    of_deaths = office.headers("carl", AccessRole.CURATOR, ("deaths",))
    assert (ids(office, of_deaths, others=True), kept(office, of_deaths, own)[0]) == ([], 404)


def test_what_everyone_was_given_is_everyones_to_read(office: Office) -> None:
    olga, bob = office.headers("olga", AccessRole.OWNER), office.headers("bob", AccessRole.ANALYST)
    public = office.ask(olga, DEATHS)[1]["certificate"]["id"]
    assert (ids(office, olga), ids(office, bob)) == ([public], [])
    assert kept(office, bob, public)[0] == 200
    assert kept(office, office.headers("bob", AccessRole.ANALYST, ("births",)), public)[0] == 404


def test_what_failed_and_what_is_being_answered_look_the_same(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    ann = office.headers("ann", AccessRole.ANALYST)
    begun: list[Any] = []

    def fail(*_: object) -> None:
        begun.append(history(office, ann)["history"][0])
        raise SourceUnreadable("the rows could not be read.")

    with monkeypatch.context() as broken:
        broken.setattr(Warehouse, "collect_together", fail)
        assert office.ask(ann, BIRTHS)[0] == 500
    (after,) = history(office, ann)["history"]
    assert begun == [after]
    assert (after["questions"], after["cost"]["births"]["epsilon"], after["own"]) == ([], "1", True)
    assert kept(office, ann, after["id"])[0] == 404


def asked_by(headers: Headers, office: Office, sql: str) -> tuple[int, bytes]:
    reply = office.browser.post("/v1/query", json={"sql": sql, "epsilon": "3.5"}, headers=headers)
    return reply.status_code, reply.content


def gone(*_: object) -> None:
    raise SourceUnavailable("the rows are gone.")


def test_an_allowance_that_does_not_suffice_does_not_tell_what_others_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is new and what was asked before are refused in the same words, also when budget or rows are gone."""
    office = Office(tmp_path, open=False, most_epsilon=5)
    ledger = Ledger.open(office.address)
    carl = office.headers("carl", AccessRole.CURATOR)
    ann, bob = (office.headers(each, AccessRole.ANALYST) for each in ("ann", "bob"))
    assert office.ask(carl, BIRTHS, "1")[0] == 200
    for name, epsilon in (("ann", "4"), ("bob", "0.5")):
        ledger.allow("births", Allowance.of(name, epsilon), "owner", "a part")
    assert office.ask(ann, BIRTHS, "3.5")[0] == 200
    known, new = asked_by(bob, office, BIRTHS), asked_by(bob, office, f"{BIRTHS} WHERE age > 10")
    assert (known, known[0]) == (new, 422)
    monkeypatch.setattr(Warehouse, "load", gone)
    assert asked_by(bob, office, BIRTHS) == asked_by(bob, office, f"{BIRTHS} WHERE age > 20") == known
    office.application.state.close()


def test_reading_is_logged_and_shapes_are_strict(here: Server) -> None:
    headers = here.bearer(AccessRole.ANALYST)
    assert here.client.get("/v1/history", params={"limit": "2", "others": "true"}, headers=headers).status_code == 200
    assert here.client.get("/v1/answers/births-1", headers=headers).status_code == 200
    assert here.client.get("/v1/answers/nothing", headers=headers).status_code == 404
    assert here.events() == [("history", "answered"), ("answer", "answered"), ("answer", "refused")]
    for wrong in ({"limit": "0"}, {"limit": "201"}, {"before": "0"}, {"limit": "1_0"}, {"before": "\u0661"}):
        assert here.client.get("/v1/history", params=wrong, headers=headers).status_code == 400
    assert here.client.get("/v1/answers/births-1", headers=here.bearer(AccessRole.AUDITOR)).status_code == 403
