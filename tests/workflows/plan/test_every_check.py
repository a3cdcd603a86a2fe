"""A plan runs every check that a release runs before its charge: what it lets pass is released, and nothing is left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

from incrowd.engines.local.engine import LOCAL
from incrowd.errors import Refused, SourceInvalid
from incrowd.workflows.plan.forecast import declared_rows, plan, undeclared
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.prepare import rehearse
from incrowd.workflows.release.tables import release
from tests.cli.conftest import run
from tests.cli.running import Runner
from tests.policies import PEOPLE, changed, people, with_ledger, written

__all__ = ["run"]

EMPTY: dict[str, Any] = {
    "dataset": {"name": "people", "rows": 60},
    "release": {"method": "safe", "levels": {"zip": 1}, "rate": "1/100", "delta": "1e-9", "k": 40},
}
PERSON: dict[str, Any] = {"columns__id": {"role": "identifier"}, "dataset__unit": {"column": "id", "max_rows": 2}}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        EMPTY,
        {"columns__sex__derived": "rows"},
        {"budget": {"epsilon": "0.5", "delta": "1e-4"}},
        {
            "columns__age__type": "date",
            "columns__age__bounds": ["2000-01-01", "2020-01-01"],
            "columns__age__hierarchy": None,
        },
    ],
    ids=["sound", "empty", "drafted", "dear", "unreadable"],
)
def test_plan_and_release_say_the_same(run: Runner, tmp_path: Path, changes: dict[str, Any]) -> None:
    pyarrow.csv.write_csv(people(), tmp_path / "people.csv")
    written(changed(PEOPLE, **changes), tmp_path)
    before = sorted(path.name for path in tmp_path.iterdir())
    planned = run("plan people.csv --policy policy.yaml")
    assert sorted(path.name for path in tmp_path.iterdir()) == before, "a plan leaves nothing behind"
    released = run("release people.csv --policy policy.yaml --out out")
    assert planned.code == released.code
    assert (released.code == 0) == (tmp_path / "out").exists()


def test_rows_that_are_known_as_another_datasets_are_foreseen(run: Runner, tmp_path: Path) -> None:
    pyarrow.csv.write_csv(people(), tmp_path / "people.csv")
    written(PEOPLE, tmp_path)
    assert run("release people.csv --policy policy.yaml --out out").code == 0
    written(changed(PEOPLE, dataset__name="again"), tmp_path)
    planned = run("plan people.csv --policy policy.yaml --json")
    assert planned.code == 1
    assert "are those of dataset people" in planned.json["refusal"]
    assert run("release people.csv --policy policy.yaml --out again").code == 1


def test_people_with_more_rows_than_are_allowed_are_foreseen(tmp_path: Path) -> None:
    unit = {"columns__id": {"role": "identifier"}, "dataset__unit": {"column": "id", "more": "refuse"}}
    policy = load_policy(with_ledger(PEOPLE, tmp_path, **unit))
    rows = people(100).append_column("id", pa.array([f"p{n // 2}" for n in range(100)]))
    with pytest.raises(SourceInvalid) as foreseen:
        rehearse(rows, policy, LOCAL)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(SourceInvalid) as refused:
        release(rows, policy)
    assert str(foreseen.value) == str(refused.value)


def test_a_draft_names_its_cause_before_and_at_the_charge(tmp_path: Path) -> None:
    policy = load_policy(with_ledger(PEOPLE, tmp_path, columns__sex__derived="rows"))
    told = str(plan(policy).refusal)
    with pytest.raises(Refused) as refused:
        release(people(), policy)
    for text in (told, str(refused.value)):
        assert "drafted from rows (derived: rows): sex" in text
        assert "secret sample" not in text


def test_the_line_that_is_missing_is_named(tmp_path: Path) -> None:
    def line(**changes: Any) -> str | None:
        return undeclared(load_policy(with_ledger(PEOPLE, tmp_path, **changes)))

    assert "add rows: N under dataset:" in str(line())
    assert "population" not in str(line())
    assert line(dataset__rows=10) is None
    assert line(dataset__population=10) is None
    both = str(line(**PERSON))
    assert "add rows: N under dataset:" in both
    assert "population: N" in both
    assert "at most 2 rows" in str(line(**PERSON, dataset__rows=10))
    assert line(**PERSON, dataset__population=10) is None


def test_of_each_person_only_so_many_rows_are_expected_to_take_part(tmp_path: Path) -> None:
    def rows(**changes: Any) -> int | None:
        return declared_rows(load_policy(with_ledger(PEOPLE, tmp_path, **changes)))

    assert rows() is None
    assert rows(dataset__rows=900, dataset__population=100) == 900
    assert rows(dataset__population=100) == 100
    assert rows(**PERSON, dataset__rows=900, dataset__population=100) == 200
    assert rows(**PERSON, dataset__rows=150, dataset__population=100) == 150
    assert rows(**PERSON, dataset__population=100) == 200


def test_a_missing_line_is_printed(run: Runner, tmp_path: Path) -> None:
    written(changed(PEOPLE, **PERSON), tmp_path)
    told = " ".join(run("plan --policy policy.yaml").out.split())
    assert "expect unknown: add rows: N under dataset:" in told
    assert "population: N" in told
