"""Questions behind a secret sample: all statistics come from one sample, and the charge is the amplified one."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from incrowd.core.steps.samples import COINS
from incrowd.engines.sql.duckdb import Warehouse
from incrowd.engines.sql.engine import SampledTable
from incrowd.errors import InvalidParameter
from incrowd.queries.query import QueryTerms
from incrowd.workflows.query.request import QueryRequest
from tests.workflows.query.test_service import service_of

SQL = "SELECT sex, COUNT(*) AS n, AVG(age) AS mean, MEDIAN(age) AS middle FROM people GROUP BY sex"
PAID = QueryTerms(epsilon=Fraction(2), rate=Fraction(1, 2))


def test_every_statistic_is_collected_from_one_and_the_same_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[SampledTable | None] = []
    passes: list[int] = []
    collect = Warehouse.collect_together

    def watched(self: Warehouse, queries: Any, drawn: SampledTable | None = None) -> tuple[pa.Table, ...]:
        seen.append(drawn)
        passes.append(len(queries))
        return collect(self, queries, drawn)

    monkeypatch.setattr(Warehouse, "collect_together", watched)
    with service_of(tmp_path) as service:
        seen.clear()
        answered = service.ask(QueryRequest(SQL, PAID))
        assert passes[-1] == 2
        assert len(seen) == 1
        assert seen[0] is not None
        assert seen[0].sample.rate == Fraction(1, 2)
        assert Decimal("1.99") < answered.cost.epsilon <= 2
        found = {row["sex"]: row["n"] for row in answered.answer.rows()}
        assert abs(found["F"] - 100) < 80  # of 100 rows about 50 are in the sample
        assert answered.certificate.claims[0].kind == "pure differential privacy"
        seen.clear()
        service.ask(QueryRequest("SELECT COUNT(*) AS n FROM people", QueryTerms(epsilon=Fraction(1, 2))))
        assert seen == [None]


def test_a_sample_in_front_of_people_is_refused_before_the_charge(tmp_path: Path) -> None:
    people = {"name": "people", "unit": {"column": "age", "max_rows": 2}}
    columns = {"sex": {"categories": ["F", "M"]}, "age": {"type": "integer", "role": "identifier"}}
    with service_of(tmp_path, dataset=people, columns=columns) as service:
        before = service.budgets.ledger.chain.head()
        with pytest.raises(InvalidParameter, match="secret sample"):
            service.ask(QueryRequest("SELECT COUNT(*) AS n FROM people", PAID))
        assert service.budgets.ledger.chain.head() == before


def test_a_sampled_answer_says_that_its_coins_must_stay_secret(tmp_path: Path) -> None:
    with service_of(tmp_path) as service:
        certificate = service.ask(QueryRequest(SQL, PAID)).certificate
        assert COINS in certificate.guarantee.assumes
        assert str(COINS) in certificate.claims[0].assumed
        plain = service.ask(QueryRequest(SQL, QueryTerms(epsilon=Fraction(1)))).certificate
        assert COINS not in plain.guarantee.assumes
