"""A query is charged to the periods that its conditions leave, and to every period where they leave more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from incrowd.accounting.budget import Amount
from incrowd.errors import BudgetExceeded
from incrowd.queries.query import QueryTerms
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.query.request import QueryRequest
from incrowd.workflows.query.service import QueryService, open_queries, publish_answer
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.series.series import Series, run_period
from incrowd.workflows.verify.verify import verify

FEBRUARY = "SELECT ward, COUNT(*) AS n FROM stays WHERE day >= '2025-02-01' AND day < '2025-03-01' GROUP BY ward"
SEAM = "SELECT COUNT(*) AS n FROM stays WHERE day BETWEEN '2025-02-28' AND '2025-03-01'"
ALL = "SELECT COUNT(*) AS n FROM stays"
DAY = {"type": "date", "bounds": ["2025-01-01", "2025-12-31"]}


def told(folder: Path, day: dict[str, Any] | None = None, **budget: Any) -> dict[str, Any]:
    return {
        "incrowd": 1,
        "dataset": {"name": "stays", "unit": {"column": "patient", "max_rows": 2}},
        "columns": {
            "patient": {"role": "identifier"},
            "ward": {"categories": ["Säuglinge", "Chirurgie"]},
            "day": DAY if day is None else day,
        },
        "period": {"column": "day", "every": "month", "first": "2025-01", "last": "2025-12"},
        "release": {"method": "private-histogram", "columns": ["ward"], "epsilon": "1/2"},
        "budget": {"epsilon": 9, "period": {"epsilon": 1}, **budget},
        "queries": {"open": True},
        "source": str(folder / "stays.parquet"),
        "ledger": f"sqlite:///{folder}/ledger.sqlite",
    }


@contextmanager
def service_of(folder: Path, **changes: Any) -> Iterator[QueryService]:
    rows = {
        "patient": [f"p{n % 50}" for n in range(90)],
        "ward": ["Säuglinge", "Chirurgie", None] * 30,
        "day": [f"2025-{1 + n % 12:02}-{1 + n % 28:02}" for n in range(90)],
    }
    pq.write_table(pa.table(rows), folder / "stays.parquet")
    with open_queries([load_policy(told(folder, **changes))]) as service:
        yield service


def ask(service: QueryService, sql: str, epsilon: str) -> None:
    service.ask(QueryRequest(sql, QueryTerms(epsilon=Fraction(epsilon))))


def charges(service: QueryService) -> dict[str, str]:
    spent = service.budgets.ledger.spent_by_period("stays")
    return {label: str(amount.epsilon) for label, amount in spent.items()}


def test_each_period_that_is_read_pays_and_the_person_pays_once(tmp_path: Path) -> None:
    with service_of(tmp_path, window={"periods": 2, "epsilon": "1.5"}) as service:
        assert (
            "charged to these: '2025-02', '2025-03'"
            in service.price(QueryRequest(SEAM, QueryTerms(epsilon=Fraction(1, 2)))).notes[-1]
        )
        ask(service, FEBRUARY, "0.6")
        ask(service, SEAM, "0.3")
        assert charges(service) == {"2025-02": "0.9", "2025-03": "0.3"}
        with pytest.raises(BudgetExceeded, match=r"0\.1 of the budget of one period of 1 remains"):
            ask(service, FEBRUARY.replace("COUNT(*)", "COUNT(ward)"), "0.2")
        with pytest.raises(BudgetExceeded, match=r"0\.3 of the budget of 2 periods in a row of 1\.5 remains"):
            ask(service, f"{ALL} WHERE EXTRACT(MONTH FROM day) = 3", "0.4")
        ask(service, ALL, "0.05")
        standing = service.budgets.status("stays")
        assert standing.totals.spent == Amount.up("0.95", 0)
        assert standing.periods is not None
        assert (standing.periods.every, standing.periods.published) == (Amount.up("0.05", 0), 0)
        assert standing.periods.worst == Amount.up("0.9", 0)


def test_a_release_of_the_period_is_charged_beside_its_queries(tmp_path: Path) -> None:
    with service_of(tmp_path) as service:
        ask(service, FEBRUARY, "0.6")
    policy = load_policy(told(tmp_path))
    with pytest.raises(BudgetExceeded, match=r"0\.4 of the budget of one period"):
        run_period(str(tmp_path / "stays.parquet"), policy, "2025-02", Destination(tmp_path / "february"))
    run = run_period(str(tmp_path / "stays.parquet"), policy, "2025-03", Destination(tmp_path / "march"))
    assert run.certificate.accounting.period is not None
    assert run.certificate.accounting.period.published == 1
    ledger = Series.of(policy).ledger
    assert ledger is not None
    assert ledger.check().ok


@pytest.mark.parametrize(
    ("day", "sql"),
    [
        (None, ALL),
        (None, f"{ALL} WHERE day < '2025-03-01' OR ward = 'Chirurgie'"),
        (None, f"{ALL} WHERE day IS NULL OR day < '2025-03-01'"),
        ({"type": "date", "bounds": ["2025-02-01", "2025-12-31"]}, SEAM.replace("2025-02-28", "2025-02-01")),
        ({"type": "date", "bounds": ["2024-01-01", "2025-12-31"]}, f"{ALL} WHERE day < '2025-02-01'"),
        ({**DAY, "missing": "2025-02-10"}, FEBRUARY),
    ],
)
def test_where_a_row_of_another_period_could_be_read_every_period_pays(
    tmp_path: Path, day: dict[str, Any] | None, sql: str
) -> None:
    with service_of(tmp_path, day=day) as service:
        ask(service, sql, "0.5")
        standing = service.budgets.status("stays")
        assert standing.periods is not None
        assert (charges(service), standing.periods.every) == ({}, Amount.up("0.5", 0))


def test_the_certificate_of_an_answer_about_a_period_verifies(tmp_path: Path) -> None:
    with service_of(tmp_path) as service:
        answered = service.ask(QueryRequest(FEBRUARY, QueryTerms(epsilon=Fraction(1, 2))))
        ledger = service.budgets.ledger
        publish_answer(answered, ledger, Destination(tmp_path / "answer"))
    checked = verify(tmp_path / "answer", ledger=ledger, policy=load_policy(told(tmp_path)))
    assert checked.failure is None
