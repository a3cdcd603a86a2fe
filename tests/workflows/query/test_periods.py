"""Queries of datasets with periods: charged to the periods that they read, which no row of others can change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from incrowd.accounting.budget import Amount
from incrowd.core.calendar import Every, PeriodCalendar
from incrowd.core.domain import Type
from incrowd.core.schema import Column, Schema
from incrowd.errors import BudgetExceeded, InvalidParameter, QueryRefused
from incrowd.queries.language.periods import reading_periods
from incrowd.queries.query import Catalog, QueryTerms, Relation
from incrowd.verifier.check import Problem
from incrowd.workflows.certificates import certificate_of, read_certificate
from incrowd.workflows.policy.policy import Policy, load_policy
from incrowd.workflows.query.recompute import recomputed_plan
from incrowd.workflows.query.request import QueryRequest
from incrowd.workflows.query.service import QueryService, open_queries, publish_answer
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.verify.verify import verify
from tests.contract.forging import placed, refolded

MARCH = "day >= '2025-03-01' AND day < DATE '2025-04-01'"
SPRING = "day BETWEEN DATE '2025-03-15' AND '2025-04-30'"
COUNT = "SELECT ward, COUNT(*) AS n, COUNT(DISTINCT id) AS people FROM stays WHERE {} GROUP BY ward"
DAYS = ("2025-02-28", "2025-03-01", "2025-03-31", "2025-04-01", "2024-01-01", None)


def policy_in(
    folder: Path, per: str | None = None, more: str | None = None, column: dict[str, Any] | None = None, **budget: Any
) -> Policy:
    unit = {"column": "id", "max_rows": 1, "per": per, "more": more}
    section: dict[str, Any] = {
        "incrowd": 1,
        "dataset": {"name": "stays", "unit": unit},
        "columns": {
            "id": {"role": "identifier"},
            "ward": {"categories": ["Ä", "B"]},
            "day": {"type": "date", "bounds": ["2025-01-01", "2025-12-31"], "outside": "drop", **(column or {})},
        },
        "period": {"column": "day", "every": "month", "first": "2025-01", "last": "2025-12"},
        "queries": {"open": True},
        "budget": {"epsilon": 1, **budget},
        "ledger": f"sqlite:///{folder}/ledger.sqlite",
    }
    return load_policy(section, folder=folder)


def rows(lines: list[tuple[str, str, str | None]]) -> pa.Table:
    names = ("id", "ward", "day")
    return pa.table({name: pa.array([line[place] for line in lines], pa.string()) for place, name in enumerate(names)})


OTHERS: list[tuple[str, str, str | None]] = [
    ("bob", "Ä", "2025-03-02"),
    ("eve", "B", "2025-04-02"),
    ("eve", "B", "2025-03-30"),
]


@contextmanager
def serving(policy: Policy, lines: list[tuple[str, str, str | None]] = OTHERS) -> Iterator[QueryService]:
    with open_queries([policy], rows(lines)) as service:
        yield service


def asking(sql: str, epsilon: str = "1/10") -> QueryRequest:
    return QueryRequest(sql, QueryTerms(epsilon=Fraction(epsilon)), None)


def test_a_query_is_charged_to_the_periods_that_its_condition_leaves(tmp_path: Path) -> None:
    policy = policy_in(tmp_path, period={"epsilon": "3/10"})
    with serving(policy) as service:
        price = service.price(asking(COUNT.format(MARCH)))
        assert any("reads the rows of 2025-03 alone" in note for note in price.notes)
        service.ask(asking(COUNT.format(MARCH)))
        service.ask(asking(COUNT.format(SPRING)))
        ledger = service.budgets.ledger
        spent = {"2025-03": Amount.up("1/5", 0), "2025-04": Amount.up("1/10", 0)}
        assert ledger.spent_by_period("stays") == spent
        assert ledger.standing("stays").totals.spent == Amount.up("1/5", 0)  # once each for a person in all of them
        service.ask(asking(COUNT.format("ward = 'B'")))
        periods = ledger.standing("stays").periods
        assert periods is not None
        assert (periods.every, periods.published) == (Amount.up("1/10", 0), 2)
        with pytest.raises(BudgetExceeded, match="the budget of one period"):
            service.ask(asking(COUNT.format(f"{MARCH} AND ward = 'B'")))
        service.ask(asking(COUNT.format("day = '2025-07-04'")))
        assert ledger.check().ok


def test_a_window_that_holds_two_of_the_periods_pays_twice(tmp_path: Path) -> None:
    policy = policy_in(tmp_path, window={"periods": 2, "epsilon": "3/10"})
    with serving(policy) as service:
        service.ask(asking(COUNT.format(SPRING)))
        with pytest.raises(BudgetExceeded, match="2 periods in a row"):
            service.ask(asking(f"{COUNT.format(SPRING)} ORDER BY n"))
        service.ask(asking(COUNT.format(MARCH)))
        standing = service.budgets.status("stays")
        assert standing.periods is not None
        assert standing.periods.window == Amount.up("3/10", 0)


def test_a_person_in_a_period_is_protected_by_queries_of_one_period_alone(tmp_path: Path) -> None:
    policy = policy_in(tmp_path, per="period", epsilon="1/10")
    with serving(policy) as service:
        service.ask(asking(COUNT.format(MARCH)))
        service.ask(asking(COUNT.format("'2025-04-01' <= day AND day <= '2025-04-30'")))
        for where in (SPRING, "ward = 'B'", "day > '2025-03-01'", f"{MARCH} OR ward = 'B'"):
            with pytest.raises(QueryRefused, match="a query reads the rows of one period"):
                service.ask(asking(COUNT.format(where)))
        with pytest.raises(BudgetExceeded):
            service.ask(asking(f"{COUNT.format(MARCH)} ORDER BY n"))
        assert service.budgets.status("stays").totals.spent == Amount.up("1/5", 0)


def statistics(policy: Policy, lines: list[tuple[str, str, str | None]], sql: str) -> list[Any]:
    """Return what a query reads of the rows before noise."""
    with serving(policy, lines) as service:
        planned = service.planner.plan(asking(sql))
        tables = [service.planner.tables.collect(query) for query in planned.statistics]
    return [sorted(map(repr, table.to_pylist())) for table in tables]


@pytest.mark.parametrize("more", [None, "drop"])
def test_nothing_of_another_period_changes_what_a_query_reads(more: str | None, tmp_path: Path) -> None:
    """All histories of two rows of one person, one of which takes part: rows of other periods displace nothing."""
    policy, sql, read = policy_in(tmp_path, "period", more), COUNT.format(MARCH), dict[str, list[Any]]()
    for days in combinations_with_replacement(DAYS, 2):
        lines = [("ann", ward, day) for ward, day in zip("ÄB", days, strict=True)]
        march = [line for line in lines if line[2] in ("2025-03-01", "2025-03-31")]
        alone = read.setdefault(repr(march), []) or statistics(policy, OTHERS + march, sql)
        read[repr(march)] = alone
        assert statistics(policy, OTHERS + lines, sql) == alone, days


def test_an_answer_about_a_period_is_verified_with_policy_and_ledger(tmp_path: Path) -> None:
    policy = policy_in(tmp_path)
    with serving(policy) as service:
        for number, where in enumerate((MARCH, SPRING, "ward = 'B'")):
            answer = service.ask(asking(COUNT.format(where)))
            folder = tmp_path / f"answer{number}"
            publish_answer(answer, service.budgets.ledger, Destination(folder))
            outcome = verify(folder, policy=policy, ledger=service.budgets.ledger)
            assert outcome.passed, outcome.failure
            steps = [step.sentence for step in answer.certificate.steps if step.kind == "read one period"]
            assert [sentence[:30] for sentence in steps] == [
                ["Only rows of 2025-03 take part"],
                ["Only rows of 2025-03 to 2025-0"],
                [],
            ][number]
    plain = read_certificate(tmp_path / "answer0").to_json()
    other = placed(placed(plain, ("steps", 0, "label"), "2025-04"), ("accounting", "period", "label"), "2025-04")
    forged = recomputed_plan(certificate_of(refolded(other)), policy)
    assert isinstance(forged, Problem)
    assert "other periods" in forged.text


MONTHS = PeriodCalendar("day", Every.MONTH, "2025-01", "2025-12")
STAYS = Relation("stays", Schema((Column("day", type=Type.DATE), Column("n"))), "stays", calendar=MONTHS)


@pytest.mark.parametrize(
    ("where", "periods"),
    [
        ("day = '2025-03-05'", ("2025-03",)),
        ("(day > '2025-02-28') AND (stays.day <= DATE '2025-04-01')", ("2025-03", "2025-04")),
        ("NOT day < '2025-03-01' AND day < '2025-04-01'", None),
        ("day >= '2025-12-01' AND day < '2026-01-01'", ("2025-12",)),
        ("day >= '2025-12-01' AND day <= '2026-01-01'", None),  # a day that is in no period
        ("day >= '2025-03-01' AND day < '2025-03-01'", None),
        ("day BETWEEN '2025-03-01' AND '2025-03-31' OR n = 'a'", None),
        ("day BETWEEN '2025-03-01' AND '2025-03-31' AND n = 'a'", ("2025-03",)),
        ("n BETWEEN '2025-03-01' AND '2025-03-31'", None),
        ("day + INTERVAL 1 DAY = '2025-03-05'", None),
    ],
)
def test_what_a_condition_leaves_is_read_off_constants(where: str, periods: tuple[str, ...] | None) -> None:
    _, days = reading_periods(f"SELECT COUNT(*) FROM stays WHERE {where}", Catalog((STAYS,)))
    assert (None if days is None else days.periods) == periods


def test_a_query_of_several_tables_or_parts_is_not_restricted() -> None:
    texts = (
        f"SELECT COUNT(*) FROM stays AS a JOIN stays AS b ON a.n = b.n WHERE a.{MARCH}",
        f"SELECT n FROM (SELECT COUNT(*) AS n, MAX(day) AS day FROM stays) AS t WHERE {MARCH}",
        f"SELECT COUNT(*) FROM stays WHERE {MARCH} UNION ALL SELECT COUNT(*) FROM stays",
    )
    for text in texts:
        assert reading_periods(text, Catalog((STAYS,)))[1] is None
    with pytest.raises(InvalidParameter):
        reading_periods("SELECT COUNT(* FROM stays", Catalog((STAYS,)))


@pytest.mark.parametrize(
    ("column", "where", "periods"),
    [
        ({}, "EXTRACT(MONTH FROM day) = 3", ("2025-03",)),
        ({}, "day IN ('2025-03-05', '2025-05-01')", ("2025-03", "2025-04", "2025-05")),
        ({}, "day IS NULL OR day < '2025-02-01'", None),
        ({"missing": "2025-03-10"}, MARCH, None),  # rows without a date are moved into March
        ({"bounds": ["2025-02-01", "2025-12-31"], "outside": "ends"}, "day < '2025-03-01'", None),
        ({"bounds": ["2025-02-01", "2025-12-31"], "outside": "drop"}, "day < '2025-03-01'", ("2025-02",)),
    ],
)
def test_functions_of_the_day_restrict_and_rules_that_move_rows_do_not(
    column: dict[str, Any], where: str, periods: tuple[str, ...] | None, tmp_path: Path
) -> None:
    with serving(policy_in(tmp_path, column=column)) as service:
        assert service.planner.plan(asking(COUNT.format(where))).periods == periods
