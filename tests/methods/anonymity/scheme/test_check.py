"""The check of microdata at chosen levels: a choice that was told better than it was is found, and so are rare rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from incrowd.core.statement import Statement
from incrowd.methods.anonymity.scheme import CHECK, ChooseLevels, OrderChosen
from incrowd.workflows.policy.policy import load_policy
from tests.contract.examples import POLICIES
from tests.policies import PEOPLE, changed
from tests.released import release_into
from tests.statements import statement_of, with_step

SCHEME: dict[str, Any] = {"release": POLICIES["scheme"]["k solved"]["release"] | {"weights": True}}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return release_into(tmp_path_factory.mktemp("scheme") / "release", **SCHEME).out / "data.csv"


@pytest.fixture
def statement() -> Statement:
    policy = load_policy(changed(PEOPLE, **SCHEME))
    return statement_of(policy.method.plan(policy.schema), policy.schema)


def test_a_released_file_holds_and_reads_back(statement: Statement, file: Path) -> None:
    assert [look.problem for look in CHECK.inspect(statement, (file,))] == [None, None]
    again = CHECK.reopen(statement, (file,))
    assert CHECK.recount(statement, again) is None
    assert len(again) == len(file.read_text().splitlines()) - 1


def test_a_choice_that_moves_less_than_a_person_can_is_found(statement: Statement) -> None:
    sensitivity = statement.basis.need(ChooseLevels).sensitivity
    assert CHECK.contradiction(statement) is None
    forged = CHECK.contradiction(with_step(statement, ChooseLevels, sensitivity=sensitivity // 2))
    assert forged is not None
    assert "more than the steps say" in forged.text


def test_a_rare_row_and_weights_that_were_not_told_are_found(statement: Statement, file: Path, tmp_path: Path) -> None:
    rare = tmp_path / "data.csv"
    first, second, *_ = file.read_text().splitlines()
    rare.write_text(f"{first}\n{second}\n")
    assert [look.problem is None for look in CHECK.inspect(statement, (rare,))] == [True, False]
    silent = with_step(statement, OrderChosen, weights=False)
    assert next(iter(CHECK.inspect(silent, (file,)))).problem is not None
