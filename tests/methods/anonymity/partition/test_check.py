"""The check of tables in boxes: rare rows, strange columns and units without a proof are found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from incrowd.core.statement import Statement
from incrowd.core.unit import Adjacency, Unit
from incrowd.methods.anonymity.partition.method import CHECK, ChooseCuts
from incrowd.methods.shared.microdata import Partitioned
from incrowd.workflows.policy.policy import load_policy
from tests.contract.examples import POLICIES
from tests.policies import PEOPLE, changed
from tests.released import release_into
from tests.statements import statement_of, with_step

PARTITION: dict[str, Any] = {"release": POLICIES["partition"]["k solved"]["release"]}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return release_into(tmp_path_factory.mktemp("partition") / "release", "parquet", **PARTITION).out / "data.parquet"


@pytest.fixture
def statement() -> Statement:
    policy = load_policy(changed(PEOPLE, **PARTITION))
    return statement_of(policy.method.plan(policy.schema), policy.schema)


def test_a_released_file_holds_and_reads_back(statement: Statement, file: Path) -> None:
    assert [look.problem for look in CHECK.inspect(statement, (file,))] == [None, None]
    again = CHECK.reopen(statement, (file,))
    assert len(again)
    assert again.names == statement.released
    assert CHECK.recount(statement, again) is None


def test_a_rare_tuple_is_found_in_memory_and_in_a_file(statement: Statement, file: Path, tmp_path: Path) -> None:
    again = CHECK.reopen(statement, (file,))
    fewer = Partitioned(again.names, again.values, again.keys[:1], again.counts[:1] * 0 + 1, again.quasi)
    problem = CHECK.recount(statement, fewer)
    assert problem is not None
    assert "too rarely" in problem.text
    rare = tmp_path / "data.csv"
    rare.write_text("sex,age,zip\nF,0,1\n")
    assert [look.problem is None for look in CHECK.inspect(statement, (rare,))] == [True, False]
    rare.write_text("sex,zip,age\nF,0,1\n")
    assert next(iter(CHECK.inspect(statement, (rare,)))).problem is not None


def test_other_outputs_are_not_tables_in_boxes(statement: Statement) -> None:
    problem = CHECK.recount(statement, object())  # type: ignore[arg-type]
    assert problem is not None


@pytest.mark.parametrize("changes", [{"columns": ("age", "sex")}, {"columns": ()}, {"columns": ("id",)}, {"depth": 0}])
def test_cuts_of_other_columns_than_the_released_ones_are_found(statement: Statement, changes: dict[str, Any]) -> None:
    assert CHECK.contradiction(statement) is None
    assert CHECK.contradiction(with_step(statement, ChooseCuts, **changes)) is not None


def test_replaced_rows_have_no_proof(statement: Statement) -> None:
    guarantee = replace(statement.basis.guarantee, unit=Unit(adjacency=Adjacency.REPLACE))
    problem = CHECK.contradiction(replace(statement, basis=replace(statement.basis, guarantee=guarantee)))
    assert problem is not None
    assert "proved for units of one row" in problem.text
