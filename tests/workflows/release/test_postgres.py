"""Releases from PostgreSQL, into PostgreSQL, with the ledger in PostgreSQL, on the command line."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.workflows.release import run as road
from incrowd.workflows.release.perform import performing as truly_performing
from tests.cli.running import Runner
from tests.policies import PEOPLE, changed, people, tuples, written
from tests.postgres_tables import ask, load

pytestmark = pytest.mark.postgres
WHOLE = changed(PEOPLE, release__k=5, release__rate=1, budget={"unbounded": "public since 2020"})
"""No sample: the release is a function of the rows."""


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner(capsys)


@pytest.fixture
def table(postgres: str) -> str:
    return load(postgres, "people", people())


def charges(folder: Path) -> int:
    place = folder / ".incrowd" / "ledger.sqlite"
    if not place.exists():
        return 0
    return sum(entry.kind == "charge" for entry in Ledger.open(f"sqlite:///{place}").entries())


def released(folder: Path) -> Counter[tuple[object, ...]]:
    return tuples(pq.read_table(folder / "data.parquet"))


def files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())


def test_a_table_a_query_and_a_file_with_the_same_rows_are_released_alike(
    postgres: str, table: str, tmp_path: Path, run: Runner
) -> None:
    pq.write_table(people(), tmp_path / "people.parquet")
    sources: dict[str, Any] = {
        "file": "../people.parquet",
        "address": table,
        "table": {"path": postgres, "table": "people"},
        "query": {"path": postgres, "query": "SELECT zip, age::integer AS age, sex FROM people ORDER BY random()"},
    }
    for name, source in sources.items():
        (tmp_path / name).mkdir()
        policy = written(changed(WHOLE, source=source), tmp_path / name)
        done = run(f"release --policy {policy} --out {tmp_path / name / 'out'}")
        assert done.code == 0, done.err
        assert released(tmp_path / name / "out") == released(tmp_path / "file" / "out")
        assert run(f"verify {tmp_path / name}/out/certificate.json").code == 0
    assert released(tmp_path / "file" / "out")


def test_the_internal_record_names_the_table_and_no_file_holds_the_password(
    table: str, tmp_path: Path, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", "s3cret-word")
    policy = written(changed(WHOLE, source=table), tmp_path)
    assert run(f"release --policy {policy} --out {tmp_path / 'out'}").code == 0
    (internal,) = (tmp_path / ".incrowd" / "internal").rglob("internal.json")
    inside = json.loads(internal.read_text())
    assert inside["source"].startswith("postgresql://")
    assert inside["source"].endswith(".people")
    assert inside["read as"]["format"] == "postgresql"
    public = b"".join(path.read_bytes() for path in files(tmp_path / "out"))
    assert b"postgresql" not in public
    assert all(b"s3cret-word" not in path.read_bytes() for path in files(tmp_path))


def test_the_same_table_under_another_name_is_recognized(table: str, tmp_path: Path, run: Runner) -> None:
    first = written(changed(PEOPLE, source=table, dataset__name="one"), tmp_path, "one.yaml")
    other = written(changed(PEOPLE, source=table, dataset__name="two"), tmp_path, "two.yaml")
    assert run(f"release --policy {first} --out {tmp_path / 'one'}").code == 0
    again = run(f"release --policy {other} --out {tmp_path / 'two'}")
    assert again.code != 0
    assert "one" in again.err


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            pa.table({"sex": ["F"], "age": ["forty"], "zip": ["02139"]}),
            "column age: 1 cell is not a whole number, in row 1; expected such as 42",
        ),
        (
            pa.table({"sex": ["F"], "age": [4.5], "zip": ["02139"]}),
            "column age: 1 cell is not a whole number, in row 1; expected such as 42",
        ),
        (pa.table({"sex": ["F"], "aged": [4], "zip": ["02139"]}), "there is no column age. Did you mean aged?"),
        (pa.table({"sex": ["F"], "age": [[4]], "zip": ["02139"]}), "column age is of type"),
    ],
)
def test_rows_that_do_not_fit_cost_nothing(
    rows: pa.Table, said: str, postgres: str, tmp_path: Path, run: Runner
) -> None:
    policy = written(changed(PEOPLE, source=load(postgres, "odd", rows)), tmp_path)
    done = run(f"release --policy {policy} --out {tmp_path / 'out'}")
    assert done.code == 2
    assert said in done.err
    assert "forty" not in done.err
    assert charges(tmp_path) == 0
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("postgresql://me@127.0.0.1:1/db::people", "cannot be reached"),
        ("postgresql://me:s3cret@127.0.0.1:1/db::people", "must not hold a password"),
        ({"path": "{}", "query": "DELETE FROM people RETURNING *"}, "must be one SELECT"),
        ({"path": "{}", "table": "persons"}, "has no table persons"),
    ],
)
@pytest.mark.usefixtures("table")
def test_a_source_that_cannot_be_read_costs_nothing(
    source: Any, said: str, postgres: str, tmp_path: Path, run: Runner
) -> None:
    named = source if isinstance(source, str) else source | {"path": postgres}
    policy = written(changed(PEOPLE, source=named), tmp_path)
    done = run(f"release --policy {policy} --out {tmp_path / 'out'}")
    assert done.code == 2
    assert said in done.err
    assert "s3cret" not in done.err + done.out
    assert charges(tmp_path) == 0
    assert ask(postgres, "SELECT count(*) FROM people") == [(600,)]


def test_after_the_charge_the_server_is_not_needed(
    postgres: str, table: str, tmp_path: Path, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bereft(*arguments: Any) -> Any:
        ask(postgres, "DROP TABLE people")
        return truly_performing(*arguments)

    monkeypatch.setattr(road, "performing", bereft)
    policy = written(changed(WHOLE, source=table), tmp_path)
    assert run(f"release --policy {policy} --out {tmp_path / 'out'}").code == 0
    assert sum(released(tmp_path / "out").values()) > 500


def test_a_release_goes_into_a_table_too_with_the_ledger_beside_it(
    postgres: str, table: str, tmp_path: Path, run: Runner
) -> None:
    policy = written(changed(WHOLE, source=table, ledger=postgres, release__weights=None), tmp_path)
    done = run(f"release --policy {policy} --out {tmp_path / 'out'} --table {postgres}::released")
    assert done.code == 0, done.err
    assert "::released" in done.out
    rows = Counter(ask(postgres, "SELECT * FROM released"))
    assert rows == released(tmp_path / "out")
    assert rows
    certificate = json.loads((tmp_path / "out" / "certificate.json").read_text())
    assert ask(postgres, "SELECT obj_description('released'::regclass)") == [(f"incrowd release {certificate['id']}",)]
    assert run(f"verify {tmp_path / 'out'}/certificate.json").code == 0
    again = run(f"release --policy {policy} --out {tmp_path / 'again'} --table {postgres}::released")
    assert again.code == 2
    assert "nothing is overwritten" in again.err
    assert not (tmp_path / "again").exists()


def test_a_table_that_cannot_be_made_is_told_before_the_charge(table: str, tmp_path: Path, run: Runner) -> None:
    policy = written(changed(PEOPLE, source=table), tmp_path)
    for place in ("postgresql://me@127.0.0.1:1/db::t", "released.csv", "postgresql://me@127.0.0.1:1/db"):
        assert run(f"release --policy {policy} --out {tmp_path / 'out'} --table {place}").code == 2
    assert charges(tmp_path) == 0
    assert not (tmp_path / "out").exists()


def test_a_table_that_fails_after_the_charge_leaves_nothing_and_the_charge_spent(
    postgres: str, table: str, tmp_path: Path, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overtaken(*arguments: Any) -> Any:
        ask(postgres, "CREATE TABLE released (a integer)")
        return truly_performing(*arguments)

    monkeypatch.setattr(road, "performing", overtaken)
    policy = written(changed(PEOPLE, source=table), tmp_path)
    done = run(f"release --policy {policy} --out {tmp_path / 'out'} --table {postgres}::released")
    assert done.code == 2
    assert "the charge is not refunded: " in done.err
    assert not (tmp_path / "out").exists()
    assert charges(tmp_path) == 1
    assert ask(postgres, "SELECT count(*) FROM released") == [(0,)]


def test_a_folder_that_cannot_appear_leaves_no_table(
    postgres: str, table: str, tmp_path: Path, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def blocked(*arguments: Any) -> Any:
        (tmp_path / "out").write_text("in the way")
        return truly_performing(*arguments)

    monkeypatch.setattr(road, "performing", blocked)
    policy = written(changed(PEOPLE, source=table), tmp_path)
    assert run(f"release --policy {policy} --out {tmp_path / 'out'} --table {postgres}::released").code == 2
    assert ask(postgres, "SELECT to_regclass('released') IS NULL") == [(True,)]


def test_profile_check_and_assess_read_the_table(table: str, tmp_path: Path, run: Runner) -> None:
    policy = written(changed(WHOLE, source=table), tmp_path)
    assert run(f"profile '{table}' --json").json["rows"] == 600
    assert run(f"check --policy {policy}").code in (0, 1)
    assert run(f"release --policy {policy} --out {tmp_path / 'out'}").code == 0
    assert run(f"assess {tmp_path / 'out'} --against '{table}' --policy {policy}").code == 0
