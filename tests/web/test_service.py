"""The server around the query service that reads rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from incrowd.accounting.budget import Allowance
from incrowd.accounting.ledger.ledger import Ledger
from incrowd.errors import InvalidParameter, QueryRefused, SourceInvalid, UnknownColumn
from incrowd.governance.access_list import AccessList
from incrowd.governance.grant import AccessRole, User
from incrowd.queries.measurement import Measurement
from incrowd.queries.query import QueryTerms
from incrowd.web.app import ServeOrder, open_server
from incrowd.workflows.certificates import certificate_of
from incrowd.workflows.policy.ledger import declaration_of
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.query.request import QueryRequest
from tests.web.serving import FAST, OFFICER, Browser

BIRTHS, DEATHS = "SELECT COUNT(*) AS n FROM births", "SELECT COUNT(*) AS n FROM deaths"


def policy(folder: Path, name: str, **more: Any) -> str:
    (folder / f"{name}.csv").write_text("sex,age\n" + "".join(f"{'fm'[each % 2]},{each % 90}\n" for each in range(200)))
    content = {
        "incrowd": 1,
        "dataset": {"name": name, "separate": "other people"},
        "source": f"{name}.csv",
        "columns": {"sex": {"categories": ["f", "m"]}, "age": {"type": "integer", "bounds": [0, 100]}},
        "queries": {"table": name, "open": True} | more,
        "budget": {"epsilon": 5, "delta": "1e-6"},
    }
    path = folder / f"{name}.yaml"
    path.write_text(json.dumps(content))
    return str(path)


class Office:
    """A server with two datasets, and a ledger to look into."""

    def __init__(self, folder: Path, **more: Any) -> None:
        self.folder, self.address = folder, f"sqlite:///{folder}/.incrowd/ledger.sqlite"
        self.access = AccessList.create(self.address)
        policies = (policy(folder, "births", **more), policy(folder, "deaths", **more))
        self.application = open_server(ServeOrder(policies, None, FAST))
        self.browser = Browser(self.application)

    def headers(self, name: str, role: AccessRole, datasets: tuple[str, ...] | None = None) -> dict[str, str]:
        end = self.access.now() + timedelta(days=1)
        return {"Authorization": f"Bearer {self.access.grant(User(name, role, datasets), end, OFFICER).token}"}

    def ask(self, headers: dict[str, str], sql: str, epsilon: str = "1", **more: str) -> tuple[int, Any]:
        reply = self.browser.post("/v1/query", json={"sql": sql, "epsilon": epsilon, **more}, headers=headers)
        return reply.status_code, reply.json()

    def spent(self, dataset: str) -> str:
        ledger = Ledger.open(self.address)
        return str(ledger.standing(dataset).totals.spent.epsilon) if ledger.knows(dataset) else "0"


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    found = Office(tmp_path)
    yield found
    found.application.state.close()


def test_an_answer_is_charged_certified_and_repeated_for_nothing(office: Office) -> None:
    ann = office.headers("ann", AccessRole.ANALYST)
    status, first = office.ask(ann, BIRTHS)
    assert (status, first["cost"]["epsilon"], office.spent("births")) == (200, "1", "1")
    _, again = office.ask(ann, "select count(*)  as n from BIRTHS -- the same")
    assert (again["answer"], again["repeated"], office.spent("births")) == (first["answer"], True, "1")
    (listed,) = office.browser.get("/v1/releases", headers=ann).json()["releases"]
    fetched = office.browser.get(f"/v1/certificates/{listed['id']}", headers=ann).json()
    assert certificate_of(fetched).names_itself()
    assert fetched == first["certificate"]


def test_an_analyst_ends_at_his_allowance_and_a_curator_at_the_budget(office: Office) -> None:
    ann, carl = office.headers("ann", AccessRole.ANALYST), office.headers("carl", AccessRole.CURATOR)
    ledger = Ledger.open(office.address)
    ledger.register(declaration_of(load_policy(office.folder / "births.yaml")))
    ledger.allow("births", Allowance.of("ann", "1.5"), "owner", "a part")
    assert office.ask(ann, BIRTHS)[0] == 200
    status, refused = office.ask(ann, f"{BIRTHS} WHERE age < 50")
    assert (status, refused["kind"], office.spent("births")) == (422, "BudgetExceeded", "1")
    assert office.ask(carl, f"{BIRTHS} WHERE age < 50", "4")[0] == 200
    assert office.ask(carl, f"{BIRTHS} WHERE age < 60", "4")[1]["kind"] == "BudgetExceeded"
    assert office.browser.get("/v1/budget", headers=ann).json()["datasets"]["births"]["spent"]["epsilon"] == "1"


def test_another_dataset_does_not_exist_for_a_token_that_does_not_cover_it(office: Office) -> None:
    ann = office.headers("ann", AccessRole.ANALYST, ("births",))
    status, foreign = office.ask(ann, DEATHS)
    _, unknown = office.ask(ann, DEATHS.replace("deaths", "nobody"))
    assert (status, foreign["error"].replace("deaths", "nobody")) == (400, unknown["error"])
    assert office.spent("deaths") == "0"
    assert [table["name"] for table in office.browser.get("/v1/schema", headers=ann).json()["tables"]] == ["births"]
    assert office.ask(office.headers("bob", AccessRole.CURATOR), DEATHS)[0] == 200
    assert office.browser.get("/v1/releases", headers=ann).json()["releases"] == []


def test_a_price_and_a_refusal_cost_nothing(office: Office) -> None:
    ann = office.headers("ann", AccessRole.ANALYST)
    assert office.ask(ann, f"EXPLAIN PRIVACY {BIRTHS}")[1]["cost"]["epsilon"] == "1"
    assert office.ask(ann, "SELECT * FROM births")[0] == 422
    assert office.ask(ann, BIRTHS, "100")[0] == 422
    assert office.ask(ann, BIRTHS, delta="7")[0] == 400
    assert office.spent("births") == "0"


def test_an_answer_is_charged_and_not_yet_listed_when_its_rows_were_read(office: Office) -> None:
    queries, seen = office.application.state.services.queries, list[object]()
    asking = QueryRequest(BIRTHS, QueryTerms(epsilon=Fraction(1)))
    begun = queries.prepare(asking).begin()
    seen.extend([office.spent("births"), queries.history.releases(), queries.price(asking).repeated])
    begun.finish()
    assert seen == ["1", [], False]
    assert queries.price(asking).repeated


def test_what_goes_wrong_after_the_charge_has_one_text(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    ann, told = office.headers("ann", AccessRole.ANALYST), set[str]()
    for number, problem in enumerate((InvalidParameter, QueryRefused, UnknownColumn, SourceInvalid, ValueError)):
        monkeypatch.setattr(Measurement, "answer", _raising(problem("the age 42 of row 7")))
        status, reply = office.ask(ann, f"{BIRTHS} WHERE age < {number}", "0.5")
        assert status == 500
        told.add(reply["error"])
    assert len(told) == 1
    assert "42" not in told.pop()
    assert office.spent("births") == "2.5"


def _raising(problem: Exception) -> Callable[..., Any]:
    def answer(*_arguments: object) -> Any:
        raise problem

    return answer


def test_an_analyst_without_an_allowance_asks_nothing_unless_the_policy_is_open(tmp_path: Path) -> None:
    office = Office(tmp_path, open=False)
    ann, carl = office.headers("ann", AccessRole.ANALYST), office.headers("carl", AccessRole.CURATOR)
    status, refused = office.ask(ann, BIRTHS)
    assert (status, refused["kind"], office.spent("births")) == (422, "Refused", "0")
    assert office.ask(ann, f"EXPLAIN PRIVACY {BIRTHS}")[0] == 200
    assert office.ask(carl, BIRTHS, "1/2")[0] == 200
    assert office.ask(ann, BIRTHS, "1/2")[1]["repeated"]  # it is for everyone
    ledger = Ledger.open(office.address)
    ledger.allow("births", Allowance.of("bob", "0.5"), "owner", "a part")
    bob = office.headers("bob", AccessRole.ANALYST)
    assert office.ask(bob, BIRTHS, "1/4")[0] == 200
    assert office.ask(bob, BIRTHS)[1]["kind"] == "BudgetExceeded"
    assert office.ask(bob, DEATHS, "1/4")[1]["kind"] == "Refused"
    assert office.ask(office.headers("eve", AccessRole.ANALYST), BIRTHS, "1/4")[1]["kind"] == "Refused"
    assert office.spent("births") == "0.75"
    office.application.state.close()


def test_a_question_of_an_analyst_costs_one_at_most_and_one_of_a_curator_what_there_is(office: Office) -> None:
    ann, carl = office.headers("ann", AccessRole.ANALYST), office.headers("carl", AccessRole.CURATOR)
    status, refused = office.ask(ann, BIRTHS, "1.5")
    assert (status, "may cost 1" in refused["error"], office.spent("births")) == (422, True, "0")
    assert office.ask(carl, BIRTHS, "1.5")[0] == 200


def seen(office: Office, headers: dict[str, str], number: str) -> tuple[list[str], int]:
    """Return what somebody sees of the list of releases, and whether of a certificate."""
    listed = office.browser.get("/v1/releases", headers=headers).json()["releases"]
    return [each["id"] for each in listed], office.browser.get(
        f"/v1/certificates/{number}", headers=headers
    ).status_code


def test_what_others_asked_is_for_those_whom_the_policy_names(tmp_path: Path) -> None:
    office = Office(tmp_path, readers=["rita"])
    ann, bob = (office.headers(name, AccessRole.ANALYST) for name in ("ann", "bob"))
    own = office.ask(ann, BIRTHS)[1]["certificate"]["id"]
    assert seen(office, ann, own) == ([own], 200)
    assert seen(office, bob, own) == ([], 404)
    readers = [("rita", AccessRole.ANALYST), ("carl", AccessRole.CURATOR), ("eve", AccessRole.AUDITOR)]
    for name, role in readers:
        assert seen(office, office.headers(name, role), own) == ([own], 200)
    public = office.ask(office.headers("olga", AccessRole.OWNER), DEATHS)[1]["certificate"]["id"]
    assert seen(office, bob, public) == ([public], 200)
    office.application.state.close()
