"""The gate lets the same people in on every engine, and tells the place where rows are no more than it must."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from sqlglot import exp, parse_one

from incrowd.core.table import Engine
from incrowd.engines.people import PersonIds
from incrowd.engines.settings import Local, Settings, Spark
from incrowd.engines.sql import postgres as pushdown
from incrowd.errors import Refused
from incrowd.governance.consent.event import Decided
from incrowd.queries.query import QueryTerms
from incrowd.workflows.consent.place import person_column
from incrowd.workflows.consent.preview import preview
from incrowd.workflows.consent.snapshot import admit
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.query.request import QueryRequest
from incrowd.workflows.query.service import QueryService, open_queries
from incrowd.workflows.query.tables import admission_to, gated_rows
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release, release_to
from tests import spark
from tests.consents import FORM, QUESTIONS, Consented, consented, known_people
from tests.contract import kinds
from tests.policies import changed, tuples
from tests.postgres_tables import load

ON_SPARK = Spark(master=spark.MASTER, config=spark.CONFIG)
WHOLE = {"columns__id": {"role": "identifier", "type": "integer"}}
"""People who are known by numbers: 17 and "17" are one person, wherever the number is read."""


def numbered() -> pa.Table:
    """Return people whose ids and ages are numbers; each fifth has a second row, and two rows are nobody's."""
    table = known_people(300)
    ages = pc.cast(table["age"], pa.int64())
    ids = pa.array([None if number in (8, 9) else number for number in range(300)], pa.int64())
    for name, values in (("age", ages), ("id", ids)):
        table = table.set_column(table.column_names.index(name), name, values)
    return pa.concat_tables([table, table.take(pa.array(range(0, 300, 5)))])


ROWS = numbered()
CONSENTING = [str(number) for number in range(0, 300, 2)]
NOT_IN_THE_DATA = ["4711", "4712"]


def only(ids: Sequence[str]) -> pa.Table:
    return ROWS.filter(pc.is_in(ROWS["id"], pa.array(list(map(int, ids)))))


def gate(plain: dict[str, Any], folder: Path, **more: Any) -> Consented:
    (folder / "rows").mkdir()
    return consented(changed(plain, **WHOLE, **more), folder, [*CONSENTING, *NOT_IN_THE_DATA])


@contextmanager
def service(made: Consented, data: object, settings: Settings | None = None) -> Iterator[QueryService]:
    with open_queries([made.policy], data, settings=settings) as opened:
        yield opened


SQL = (
    "SELECT sex, COUNT(*) AS n, SUM(age) AS total FROM people GROUP BY sex",
    "SELECT COUNT(*) AS n FROM people AS a JOIN people AS b ON a.id = b.id WHERE a.age > 40",
    "WITH few AS (SELECT id, COUNT(*) AS n FROM people GROUP BY id) SELECT n, COUNT(*) AS m FROM few GROUP BY n",
)


def exact(opened: QueryService, questions: Sequence[str] = SQL) -> list[list[tuple[Any, ...]]]:
    """Return exact answers to trees, from behind the gate: nobody else sees these."""
    rows = gated_rows(opened.planner.tables, opened.planner.catalog, "people", admission_to(opened.planner.policies))
    found = []
    for sql in questions:
        query = parse_one(sql, dialect="duckdb")
        assert isinstance(query, exp.Query)
        table = rows.collect(query)
        found.append(sorted(tuple(map(_plain, row.values())) for row in table.to_pylist()))
    return found


def _plain(value: Any) -> Any:
    """Return a number as one: a database sends long ones as text."""
    return value if isinstance(value, str) and not value.isdigit() else int(value)


def expected(tmp_path: Path, ids: Sequence[str], questions: Sequence[str] = SQL) -> list[list[tuple[Any, ...]]]:
    """Return the same from a table of those who consent, which nobody gates."""
    plain = changed(QUESTIONS, **WHOLE, purpose=None, consent=None, ledger=f"sqlite:///{tmp_path}/other.sqlite")
    with open_queries([load_policy(plain)], only(ids)) as opened:
        return exact(opened, questions)


def gated_answers(tmp_path: Path, made: Consented, data: object, settings: Settings | None = None) -> None:
    """Ask before and after a withdrawal; nothing is loaded anew."""
    with service(made, data, settings) as opened:
        assert exact(opened) == expected(tmp_path, CONSENTING)
        made.decide(Decided.WITHDRAW, CONSENTING[:50])
        assert exact(opened, SQL[:1]) == expected(tmp_path, CONSENTING[50:], SQL[:1])
        asked = opened.ask(QueryRequest("SELECT COUNT(*) AS n FROM people", QueryTerms(epsilon=Fraction(5000))))
        assert int(asked.answer.table.column(0)[0].as_py()) == 80, "twenty people have more rows than one"


RICH = changed(QUESTIONS, budget={"epsilon": 10**6, "delta": 0})


def test_questions_see_the_same_people_here(tmp_path: Path) -> None:
    gated_answers(tmp_path, gate(RICH, tmp_path), ROWS)


def test_questions_see_the_same_people_on_spark(tmp_path: Path, spark_engine: Engine) -> None:
    del spark_engine  # the session that is there is used
    gated_answers(tmp_path, gate(RICH, tmp_path), kinds.parquet_folder(ROWS, tmp_path / "rows"), ON_SPARK)


@pytest.mark.postgres
def test_questions_see_the_same_people_inside_postgresql(tmp_path: Path, postgres: str) -> None:
    made = gate(changed(RICH, queries__pushdown=True), tmp_path)
    gated_answers(tmp_path, made, load(postgres, "people", ROWS))


@pytest.mark.postgres
def test_postgresql_is_told_which_of_its_ids_take_part_and_nothing_else(
    tmp_path: Path, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = gate(changed(RICH, queries__pushdown=True), tmp_path)
    sent, fetched = list[tuple[str, tuple[str, ...]]](), pushdown._fetched

    def noted(connection: Any, text: str, parameters: Sequence[str]) -> pa.Table:
        sent.append((text, tuple(parameters)))
        return fetched(connection, text, parameters)

    monkeypatch.setattr(pushdown, "_fetched", noted)
    with service(made, load(postgres, "people", ROWS)) as opened:
        exact(opened)
    present = {str(each) for each in ROWS["id"].to_pylist()}
    admission = admit(made.policy)
    assert admission is not None
    for text, parameters in sent:
        whole = " ".join((text, *parameters))
        assert not any(name in whole for name in (*NOT_IN_THE_DATA, *admission.subjects, admission.key.key.hex()))
        assert "'" not in text, "an id would stand in the text of a question, which servers keep"
        assert all(set(map(str, eval(each))) == present & set(CONSENTING) for each in parameters)


def made_table(folder: Path, made: Consented, data: object, settings: Settings) -> pa.Table:
    policy = replace(made.policy, engine=settings)
    return release_to(data, policy, Destination(folder, "csv")).release.result.to_arrow()


def ungated(tmp_path: Path, ids: Sequence[str]) -> pa.Table:
    plain = changed(FORM, **WHOLE, purpose=None, consent=None, ledger=f"sqlite:///{tmp_path}/other.sqlite")
    found: pa.Table = release(only(ids), plain).result.to_arrow()
    return found


def spoiled() -> pa.Table:
    """Return rows in which nobody who did not consent has an age."""
    takes_part = set(map(int, CONSENTING))
    ages = [
        age if whose in takes_part else -7
        for age, whose in zip(ROWS["age"].to_pylist(), ROWS["id"].to_pylist(), strict=True)
    ]
    return ROWS.set_column(ROWS.column_names.index("age"), "age", pa.array(ages))


def gated_release(tmp_path: Path, data: object, settings: Settings) -> None:
    """Release, and after one person left try again."""
    made = gate(FORM, tmp_path)
    (tmp_path / "out").mkdir()
    found = made_table(tmp_path / "out" / "first", made, data, settings)
    assert tuples(found) == tuples(ungated(tmp_path, CONSENTING))
    made.decide(Decided.WITHDRAW, CONSENTING[5:6])
    with pytest.raises(Refused, match="1 left and 0 joined"):
        made_table(tmp_path / "out" / "again", made, data, settings)
    seen = preview(replace(made.policy, engine=settings), data)
    assert (seen.consenting, seen.leavers, len(seen.isolating)) == (len(CONSENTING) - 2, 1, 1)


def test_a_release_is_of_the_same_people_here(tmp_path: Path) -> None:
    gated_release(tmp_path, spoiled(), Local())


def test_a_release_is_of_the_same_people_on_spark(tmp_path: Path, spark_engine: Engine) -> None:
    del spark_engine
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    gated_release(tmp_path, str(kinds.parquet_folder(spoiled(), folder)), ON_SPARK)


@pytest.mark.postgres
def test_a_release_is_of_the_same_people_from_postgresql(tmp_path: Path, postgres: str) -> None:
    gated_release(tmp_path, load(postgres, "people", spoiled()), Local())


def test_the_tasks_of_spark_know_who_takes_part_and_nothing_else(tmp_path: Path, spark_engine: Engine) -> None:
    made = gate(FORM, tmp_path)
    admission = admit(made.policy)
    assert admission is not None
    opened = spark_engine.open(kinds.csv(ROWS, tmp_path / "rows"))
    person = person_column(made.policy)
    rows: Any = spark_engine.admitted(opened, admission.by(person))
    again: Any = spark_engine.admitted(opened, admission.by(person))
    found = spark_engine.learn(rows, ["id"], partial(PersonIds, person)).names
    assert found == {str(each) for each in ROWS["id"].to_pylist()} & set(CONSENTING)
    _, reading = rows.selected(["sex"])
    sent = pickle.dumps(reading)
    assert len(reading.filters[0].hashes) == len(CONSENTING) - 1, (
        "one consenting person has no id, and two are not in the data"
    )
    assert not rows.admitted.hashes & again.admitted.hashes, "two sets of the same people have nothing in common"
    assert admission.key.key not in sent
    assert not any(subject.encode() in sent or bytes.fromhex(subject) in sent for subject in admission.subjects)
    assert rows.rows is None, "how many take part is not known before they are read"
