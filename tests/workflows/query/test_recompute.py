"""Certificates of sampled answers and of unknown groups: true ones verify, a sample or threshold made up does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from incrowd.accounting.budget import Allowance, Amount
from incrowd.errors import InvalidParameter, Refused
from incrowd.mechanisms.vector_noise import AddCube, AddGaussianVector
from incrowd.queries.check import chance_of
from incrowd.queries.query import QueryTerms
from incrowd.queries.steps.noise import CubeNoise, GaussianNoise
from incrowd.workflows.query.request import QueryRequest
from incrowd.workflows.query.service import publish_answer
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.verify.verify import verify
from tests.workflows.query.test_published import forged, step
from tests.workflows.query.test_service import ROWS, service_of

SAMPLED = ("SELECT sex, COUNT(*) AS n, AVG(age) AS m, MEDIAN(age) AS c FROM people GROUP BY sex", {"rate": "1/10"})
UNKNOWN = ("SELECT town, COUNT(*) AS n, AVG(age) AS m FROM people GROUP BY town", {"delta": "1e-7"})


def published(folder: Path, sql: str, **terms: str) -> Path:
    """An answer in a folder, about people some of whom live in a town that nobody declared."""
    pq.write_table(ROWS.append_column("town", pa.array(["A", "A", "B", "C"] * 50)), folder / "people.parquet")
    columns = {"sex": {"categories": ["F", "M"]}, "age": {"type": "integer", "bounds": [0, 120]}, "town": {}}
    paid = QueryTerms(epsilon=Fraction(1), **{name: Fraction(value) for name, value in terms.items()})
    with service_of(folder, columns=columns) as service:
        publish_answer(service.ask(QueryRequest(sql, paid)), service.budgets.ledger, Destination(folder / "out", "csv"))
        assert verify(folder / "out", ledger=service.budgets.ledger).passed
    return folder / "out"


@pytest.mark.parametrize(
    ("asked", "change"),
    [
        (SAMPLED, lambda plain: step(plain, "sample").update(rate="1/100")),
        (SAMPLED, lambda plain: step(plain, "sample").update(rate="0")),
        (SAMPLED, lambda plain: step(plain, "sample").update(design="the first rows")),
        (SAMPLED, lambda plain: step(plain, "understand").update(tables=["people", "others"])),
        (SAMPLED, lambda plain: plain["steps"].insert(3, plain["steps"].pop(1))),
        (UNKNOWN, lambda plain: plain["steps"].insert(1, {"step": "sample", "rate": "1/2", "design": "Poisson"})),
        (UNKNOWN, lambda plain: step(plain, "threshold").update(least=2)),
        (UNKNOWN, lambda plain: step(plain, "threshold").update(least=step(plain, "threshold")["least"] - 2)),
        (UNKNOWN, lambda plain: step(plain, "threshold").update(on=2)),
        (UNKNOWN, lambda plain: step(plain, "threshold").update(delta="1e-9")),
    ],
)
def test_a_sample_or_a_threshold_that_is_made_up_is_found_out(
    tmp_path: Path, asked: tuple[str, dict[str, str]], change: Callable[[dict[str, Any]], Any]
) -> None:
    sql, terms = asked
    assert not forged(published(tmp_path, sql, **terms), change)


WRITTEN = (
    "SELECT COUNT(DISTINCT age) AS ages, CORR(age, age) AS c FROM people WHERE age < CURRENT_DATE - DATE '2025-01-01'",
    "SELECT sex, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*)) AS r FROM people GROUP BY ROLLUP (sex)",
    "SELECT MAX(n) AS most FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex)",
)
"""Different values, moments, a declared day, totals, windows, an answer of an answer."""


@pytest.mark.parametrize("sql", WRITTEN)
def test_what_analysts_write_is_certified_and_planned_again(tmp_path: Path, sql: str) -> None:
    with service_of(tmp_path, queries={"today": "2025-12-31"}) as service:
        answered = service.ask(QueryRequest(sql, QueryTerms(epsilon=Fraction(1))))
        assert "CURRENT_DATE" not in answered.certificate.steps[0].sentence
        publish_answer(answered, service.budgets.ledger, Destination(tmp_path / "out", "csv"))
        found = verify(tmp_path / "out", ledger=service.budgets.ledger, policy=service.planner.policies[0])
        assert found.passed, found
        again = service.ask(QueryRequest(sql.lower(), QueryTerms(epsilon=Fraction(1))))
        assert again.repeated


def test_different_values_that_are_said_to_move_less_are_found_out(tmp_path: Path) -> None:
    out = published(tmp_path, "SELECT COUNT(DISTINCT age) AS n FROM people")
    assert not forged(out, lambda plain: step(plain, "add up").update(rows=2))


@pytest.mark.parametrize("chance", [Fraction(1, 100), Fraction(1, 10**9)])
def test_tails_are_those_of_the_thresholds_by_another_route(chance: Fraction) -> None:
    cube = AddCube(Fraction(1, 2), (1, 100, 7), 2).law
    noise = CubeNoise(Fraction(1, 2), cube.widths, cube.fine, cube.scale)
    for place in range(3):
        reach = cube.reach(place, chance)
        assert chance_of(noise, place, reach) <= chance
        assert chance_of(noise, place, reach - 1 - reach // 100) > chance
    gaussian = AddGaussianVector.costing("0.01", (1, 50), 2).law
    scales = GaussianNoise(gaussian.scales)
    for place in range(2):
        reach = gaussian.reach(place, chance)
        assert chance_of(scales, place, reach) <= chance
        assert chance_of(scales, place, reach - 1 - reach // 10) > chance


@pytest.mark.parametrize("terms", [{"epsilon": "1/10"}, {"rho": "1/100", "delta": "1e-7"}, {"error": "50"}])
def test_an_account_pays_in_rho_alone(tmp_path: Path, terms: dict[str, str]) -> None:
    paid = QueryTerms(**{name: Fraction(value) for name, value in terms.items()})
    with service_of(tmp_path) as service:
        service.budgets.ledger.register(service.budgets.bonds["people"].declaration)
        service.budgets.ledger.carve("people", "gauss", "0.01", "1e-7")
        before = service.budgets.ledger.chain.head()
        with pytest.raises(InvalidParameter, match="rho alone"):
            service.ask(QueryRequest("SELECT COUNT(*) FROM people", paid, account="gauss"))
        assert service.budgets.ledger.chain.head() == before


def test_no_analyst_draws_on_an_account_beyond_his_allowance(tmp_path: Path) -> None:
    asked = QueryRequest("SELECT COUNT(*) FROM people", QueryTerms(rho=Fraction(1, 200)), "ann", account="gauss")
    with service_of(tmp_path) as service:
        service.budgets.ledger.register(service.budgets.bonds["people"].declaration)
        service.budgets.ledger.allow("people", Allowance.of("ann", "0.01"), "an officer", "a test")
        service.budgets.ledger.carve("people", "gauss", "0.01", "1e-7")
        before = service.budgets.ledger.chain.head()
        for ask in (service.ask, service.price):
            with pytest.raises(Refused, match="out of an allowance"):
                ask(asked)
        assert service.budgets.ledger.chain.head() == before
        assert service.ask(replace(asked, analyst=None)).cost == Amount()


def test_a_price_in_rho_is_told_for_an_account_and_refused_without_one(tmp_path: Path) -> None:
    asked = QueryRequest("SELECT COUNT(*) FROM people", QueryTerms(rho=Fraction(1, 200)), account="gauss")
    with service_of(tmp_path, queries={"most_epsilon": "0.1"}) as service:
        service.budgets.ledger.register(service.budgets.bonds["people"].declaration)
        service.budgets.ledger.carve("people", "gauss", "0.01", "1e-7")
        assert service.price(asked).cost == Amount()
        with pytest.raises(InvalidParameter, match="name one"):
            service.price(replace(asked, account=None))
