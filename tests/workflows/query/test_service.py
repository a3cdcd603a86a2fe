"""The query service: priced without a row, charged before one, answered once, and the same answer from then on."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from incrowd.accounting.budget import Allowance, Amount
from incrowd.core.codec import public_text
from incrowd.engines.sql.duckdb import Warehouse
from incrowd.engines.sql.engine import Limits
from incrowd.errors import BudgetExceeded, InvalidParameter, QueryFailed, Refused, SourceInvalid, SourceUnreadable
from incrowd.queries.query import QueryTerms
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.query.answers import StoredAnswer
from incrowd.workflows.query.request import QueryRequest
from incrowd.workflows.query.service import QueryService, open_queries
from tests.certificates import certificate

COUNT = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex"
ROWS = pa.table({"sex": ["F", "M", "F", None] * 50, "age": list(range(100)) * 2})


def told(folder: Path, **changes: Any) -> dict[str, Any]:
    return {
        "incrowd": 1,
        "dataset": {"name": "people"},
        "columns": {"sex": {"categories": ["F", "M"]}, "age": {"type": "integer", "bounds": [0, 120]}},
        "queries": {"open": True},
        "budget": {"epsilon": 3, "delta": "1e-6"},
        "ledger": f"sqlite:///{folder}/ledger.sqlite",
    } | changes


@contextmanager
def service_of(folder: Path, limits: Limits | None = None, **changes: Any) -> Iterator[QueryService]:
    path = folder / "people.parquet"
    if not path.exists():
        pq.write_table(ROWS, path)
    with open_queries([load_policy(told(folder, **changes))], path, limits) as service:
        yield service


def asking(sql: str = COUNT, epsilon: str = "1", analyst: str | None = None, **terms: Any) -> QueryRequest:
    return QueryRequest(sql, QueryTerms(epsilon=Fraction(epsilon), **terms), analyst)


def test_an_answer_at_hand_is_given_again_without_another_thread_of_work(tmp_path: Path) -> None:
    with service_of(tmp_path) as service:
        assert service.prepare(asking(analyst="ann")).again() is None
        first = service.ask(asking(analyst="ann"))
        known = service.prepare(asking(analyst="ann")).again()
        assert known is not None
        given = known.finish()
        assert (given.answer, given.certificate, given.repeated) == (first.answer, first.certificate, True)
        assert service.prepare(asking(analyst="bob")).again() is None  # whether he may have it is the ledger's to say


def test_what_is_sent_is_the_plain_form_as_json(tmp_path: Path) -> None:
    with service_of(tmp_path) as service:
        for found in (service.ask(asking()), service.ask(asking())):
            assert found.texts is not None
            assert found.to_text() == public_text(found.to_json()) == replace(found, texts=None).to_text()
    with service_of(tmp_path) as service:
        assert json.loads(service.ask(asking()).to_text()) == json.loads(found.to_text())  # read from the disk


def test_infinite_numbers_are_sent_as_null() -> None:
    stored = StoredAnswer('{"answer":1,"high":[Infinity,1.5],"note":"NaN"}', certificate(), 1)
    assert stored.texts.answer == '{"answer":1,"high":[null,1.5],"note":"NaN"}'


def test_a_price_is_told_without_reading_or_spending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with service_of(tmp_path) as service:
        monkeypatch.setattr(Warehouse, "collect_together", lambda *_: pytest.fail("a row was read"))
        before = service.budgets.ledger.chain.head()
        priced = service.price(asking())
        assert priced.cost == Amount.up(1, 0)
        assert priced.left == {"people": Amount.up(2, "1e-6")}
        assert [each.output for each in priced.expected] == ["n"]
        assert service.budgets.ledger.chain.head() == before


def test_an_answer_is_charged_certified_and_near_the_truth(tmp_path: Path) -> None:
    with service_of(tmp_path) as service:
        answered = service.ask(asking(epsilon="2"))
        assert {row["sex"] for row in answered.answer.rows()} == {"F", "M", "other", None}
        n = {row["sex"]: row["n"] for row in answered.answer.rows()}
        assert abs(n["F"] - 100) < 30
        assert answered.cost == Amount.up(2, 0)
        assert answered.certificate.claims[0].kind == "pure differential privacy"
        assert answered.certificate.names_itself()
        assert service.history.certificate(answered.certificate.id) == answered.certificate
        assert service.budgets.ledger.standing("people").left == Amount.up(1, "1e-6")


def test_the_same_question_again_is_the_same_answer_for_nothing(tmp_path: Path) -> None:
    with service_of(tmp_path) as service:
        first = service.ask(asking())
        again = service.ask(asking("select  SEX, count(*) as n from PEOPLE group by sex -- again"))
        assert again.repeated
        assert again.answer == first.answer
        assert again.certificate == first.certificate
        assert again.cost == Amount()
        assert service.price(asking()).repeated
        assert service.budgets.ledger.standing("people").totals.spent == Amount.up(1, 0)


def test_the_same_question_at_another_price_or_version_is_another(tmp_path: Path) -> None:
    with service_of(tmp_path) as service:
        service.ask(asking())
        assert not service.ask(asking(epsilon="1/2")).repeated
    with service_of(tmp_path, dataset={"name": "people", "version": "2"}) as service:
        assert not service.ask(asking()).repeated


def test_an_analyst_who_has_not_paid_for_an_answer_pays_his_allowance(tmp_path: Path) -> None:
    with service_of(tmp_path) as service:
        service.budgets.ledger.register(service.budgets.bonds["people"].declaration)
        service.budgets.ledger.allow("people", Allowance.of("bob", "1.5"), "owner", "a study")
        service.budgets.ledger.allow("people", Allowance.of("cid", "0.5"), "owner", "a study")
        service.ask(asking(analyst="ann"))
        assert service.ask(asking(analyst="bob")).repeated
        assert service.budgets.report("bob")["people"]["spent"]["epsilon"] == "1"
        with pytest.raises(BudgetExceeded, match="cid's allowance"):
            service.ask(asking(analyst="cid"))
        assert service.budgets.ledger.standing("people").totals.spent == Amount.up(1, 0)


def test_what_does_not_fit_the_budget_is_refused_before_a_row_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with service_of(tmp_path) as service:
        monkeypatch.setattr(Warehouse, "collect_together", lambda *_: pytest.fail("a row was read"))
        with pytest.raises(BudgetExceeded, match="3 of the budget of 3 remains"):
            service.ask(asking(epsilon="4"))
        assert service.price(asking(epsilon="4")).left == {"people": None}


def test_the_charge_is_on_disk_before_a_row_is_read_and_stays_if_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with service_of(tmp_path) as service:
        spent = list[Decimal]()

        def fail(*_: object) -> None:
            spent.append(service.budgets.ledger.standing("people").totals.spent.epsilon)
            raise SourceUnreadable("the rows could not be read.")

        monkeypatch.setattr(Warehouse, "collect_together", fail)
        with pytest.raises(SourceUnreadable, match="the charge is not refunded"):
            service.ask(asking())
        assert spent == [1]
        assert service.budgets.ledger.standing("people").totals.spent.epsilon == 1
        assert not list(service.history.answers.all())


def test_a_question_may_cost_no_more_than_the_policy_says(tmp_path: Path) -> None:
    with service_of(tmp_path, queries={"most_epsilon": "0.5"}) as service:
        service.ask(asking(epsilon="0.5"))
        with pytest.raises(Refused, match=r"may cost 0\.5"):
            service.ask(asking(epsilon="0.6"))


def test_a_slow_question_is_stopped_and_stays_paid_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with service_of(tmp_path) as service:

        def slow(*_: object) -> None:
            raise QueryFailed("the query exceeded its time limit.")

        monkeypatch.setattr(Warehouse, "collect_together", slow)
        with pytest.raises(QueryFailed, match="not refunded"):
            service.ask(asking())


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"queries": None, "release": {"method": "full-domain", "k": 2}}, "does not allow queries"),
        ({"budget": None}, "no budget"),
        ({"columns": {"sex": {"categories": ["F", "M"], "derived": "rows"}}}, "drafted from the rows"),
    ],
)
def test_a_policy_that_cannot_answer_says_what_it_lacks(tmp_path: Path, changes: dict[str, Any], match: str) -> None:
    lacking = {name: value for name, value in told(tmp_path, **changes).items() if value is not None}
    pq.write_table(ROWS, tmp_path / "people.parquet")
    with (
        pytest.raises(InvalidParameter, match=match),
        open_queries([load_policy(lacking)], tmp_path / "people.parquet"),
    ):
        pytest.fail("it opened")


def test_one_name_more_brings_no_fresh_budget(tmp_path: Path) -> None:
    with service_of(tmp_path) as service:
        service.ask(asking())
    with (
        pytest.raises(Refused, match="are those of dataset people"),
        service_of(tmp_path, dataset={"name": "others"}),
    ):
        pytest.fail("it opened")


def test_a_desk_for_some_datasets_knows_no_others(tmp_path: Path) -> None:
    with service_of(tmp_path) as service:
        assert [table["name"] for table in service.schema()["tables"]] == ["people"]
        nothing = service.within([])
        assert nothing.schema() == {"tables": []}
        with pytest.raises(InvalidParameter, match="no table"):
            nothing.price(asking())


def test_joins_with_public_tables_and_tables_of_the_same_people(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": ["a", "b", "c", "c"], "sex": ["F", "M", "F", "F"]}), tmp_path / "people.parquet")
    pq.write_table(pa.table({"who": ["a", "a", "b"], "cost": [10, 20, 30]}), tmp_path / "visits.parquet")
    pq.write_table(pa.table({"sex": ["F", "M"], "word": ["female", "male"]}), tmp_path / "words.parquet")
    changes: dict[str, Any] = {
        "dataset": {"name": "people", "unit": {"column": "id"}},
        "columns": {"id": {"role": "identifier"}, "sex": {"categories": ["F", "M"], "outside": "drop"}},
        "tables": {
            "visits": {
                "source": str(tmp_path / "visits.parquet"),
                "unit": "who",
                "max_rows": 2,
                "columns": {"who": {"role": "identifier"}, "cost": {"type": "integer", "bounds": [0, 100]}},
            },
            "words": {
                "source": str(tmp_path / "words.parquet"),
                "public": True,
                "columns": {"sex": {"categories": ["F", "M"]}, "word": {"categories": ["female", "male"]}},
            },
        },
        "budget": {"epsilon": "2000"},
    }
    with service_of(tmp_path, **changes) as service:
        n = service.ask(asking("SELECT COUNT(*) AS n FROM people", "200")).answer.rows()[0]["n"]
        assert n == 3, "one row of each person takes part"
        total = service.ask(
            asking("SELECT SUM(cost) AS s FROM people JOIN visits ON people.id = visits.who", "500")
        ).answer.rows()[0]["s"]
        assert abs(total - 60) < 20  # noise of scale 100 · 2 / 500: beyond is a chance of 2 e^(−50)
        words = service.ask(
            asking("SELECT word, COUNT(*) AS n FROM people JOIN words ON people.sex = words.sex GROUP BY word", "200")
        ).answer.rows()
        assert {row["word"]: row["n"] for row in words}["female"] == 2


@pytest.mark.parametrize(("more", "people"), [(None, 4), ("drop", 3), ("refuse", None)])
def test_what_becomes_of_people_with_more_rows_holds_for_questions(
    tmp_path: Path, more: str | None, people: int | None
) -> None:
    pq.write_table(
        pa.table({"id": ["a", "b", "c", "d", "d"], "sex": ["F", "M", "F", "F", None]}), tmp_path / "people.parquet"
    )
    changes: dict[str, Any] = {
        "dataset": {"name": "people", "unit": {"column": "id"} | ({} if more is None else {"more": more})},
        "columns": {
            "id": {"role": "identifier"},
            "sex": {"categories": ["F", "M"], "outside": "drop", "missing": "drop"},
        },
        "budget": {"epsilon": "2000"},
    }
    if people is None:
        with pytest.raises(SourceInvalid, match="1 person has more than 1 row"), service_of(tmp_path, **changes):
            pass
        return
    with service_of(tmp_path, **changes) as service:
        asked = service.ask(asking("SELECT COUNT(*) AS n FROM people", "200"))
        assert asked.answer.rows()[0]["n"] == people  # noise of scale 1 / 200: beyond is a chance of e^(−200)
        assert asked.certificate.claims[0].unit == service.planner.policies[0].schema.unit


def test_many_threads_never_overspend(tmp_path: Path) -> None:
    with service_of(tmp_path, budget={"epsilon": "1"}) as service:
        answered, refused = list[object](), list[object]()

        def ask(number: int) -> None:
            try:
                answered.append(service.ask(asking(f"SELECT COUNT(*) AS n FROM people WHERE age > {number}", "0.2")))
            except BudgetExceeded as refusal:
                refused.append(refusal)

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (len(answered), len(refused)) == (5, 7)
        assert service.budgets.ledger.check().ok


def test_fewer_groups_a_person_need_less_noise_for_people(tmp_path: Path) -> None:
    visits = {"id": [f"p{n % 40}" for n in range(200)], "day": [n // 40 for n in range(200)]}
    pq.write_table(pa.table(visits), tmp_path / "people.parquet")
    columns = {"id": {"role": "identifier"}, "day": {"type": "integer", "bounds": [0, 4], "missing": "drop"}}
    sql, widths = "SELECT day, COUNT(DISTINCT id) AS n FROM people GROUP BY day", list[float | None]()
    for most in (None, 1):
        folder = tmp_path / str(most)
        folder.mkdir()
        pq.write_table(pa.table(visits), folder / "people.parquet")
        told = {"max_groups": most} if most else {}
        unit = {"name": "people", "unit": {"column": "id", "max_rows": 5}}
        with service_of(folder, columns=columns, dataset=unit, queries=told) as service:
            widths.append(service.price(asking(sql)).expected[0].half_width)
    assert widths[0] is not None
    assert widths[1] is not None
    assert widths[1] < widths[0] / 3
