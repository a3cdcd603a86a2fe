"""What every engine must be, on every kind of source: the same rows and the same coins come to the same release."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from incrowd.core.cells import Cells
from incrowd.core.table import Engine, Table
from incrowd.engines import choose
from incrowd.engines.local.engine import LOCAL as HERE
from incrowd.engines.settings import Spark
from incrowd.errors import SourceInvalid, SourceUnreadable, UnknownColumn
from incrowd.methods import METHODS
from incrowd.workflows.policy import Policy, load_policy
from incrowd.workflows.protect import release
from tests.contract import kinds
from tests.contract.agreed import AgreedCoins
from tests.contract.examples import POLICIES, rows
from tests.policies import PEOPLE, changed, tuples, with_ledger
from tests.postgres_tables import load
from tests.tables import as_counter

EXAMPLES = [
    pytest.param(method.name, name, id=f"{method.name}-{name}")
    for method in METHODS
    for name in POLICIES.get(method.name, ())
]
FIRST = [
    pytest.param(method.name, next(iter(POLICIES[method.name])), id=method.name)
    for method in METHODS
    if POLICIES.get(method.name)
]
SOURCES = [
    *kinds.LOCAL,
    pytest.param("postgresql", marks=pytest.mark.postgres),
    *(f"spark-{name}" for name in kinds.CLUSTER),
]
ON_ONE_MACHINE = [source for source in SOURCES if not str(source).startswith("spark")]
FOLDER_ON_SPARK = "spark-folder"


def source_of(kind: str, table: pa.Table, request: pytest.FixtureRequest) -> object:
    """Put the rows where a kind of source has them, and return what is opened."""
    if kind == "postgresql":
        return load(request.getfixturevalue("postgres"), "people", table)
    store = kinds.CLUSTER[kind.removeprefix("spark-")] if kind.startswith("spark-") else kinds.LOCAL[kind]
    folder: Path = request.getfixturevalue("tmp_path") / kind
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return store(table, folder)


def engine_of(kind: str, request: pytest.FixtureRequest) -> Engine:
    if kind.startswith("spark-"):
        engine: Engine = request.getfixturevalue("spark_engine")
        return engine
    return HERE


def opened(kind: str, table: pa.Table, policy: Policy, request: pytest.FixtureRequest) -> Table:
    return choose.open_table(source_of(kind, table, request), policy.schema, policy.options, engine_of(kind, request))


def released(policy: Policy, table: Table) -> Counter[tuple[object, ...]]:
    return tuples(policy.method.release(table, AgreedCoins(11)).to_arrow())


def people_apart() -> pa.Table:
    """Nobody has two rows: who is left out because of others is no matter of coins."""
    table = rows()
    ids = [None if n % 40 == 0 else f"p{n}" for n in range(len(table))]
    return table.set_column(table.column_names.index("id"), "id", pa.array(ids, pa.string()))


def test_every_method_has_an_example() -> None:
    missing = [method.name for method in METHODS if not POLICIES.get(method.name)]
    assert not missing, f"write a policy for each of {missing} into POLICIES in tests/contract/examples.py"


@pytest.mark.parametrize("kind", ON_ONE_MACHINE)
@pytest.mark.parametrize(("method", "name"), EXAMPLES)
def test_the_same_coins_release_the_same_rows_from_every_source(
    method: str, name: str, kind: str, request: pytest.FixtureRequest
) -> None:
    policy = load_policy(POLICIES[method][name])
    expected = released(policy, opened("frame", people_apart(), policy, request))
    assert expected, "nothing was released, so nothing was compared"
    assert released(policy, opened(kind, people_apart(), policy, request)) == expected


@pytest.mark.parametrize(("method", "name"), EXAMPLES)
def test_the_same_coins_release_the_same_rows_on_spark(method: str, name: str, request: pytest.FixtureRequest) -> None:
    policy = load_policy(POLICIES[method][name])
    expected = released(policy, opened("frame", people_apart(), policy, request))
    assert released(policy, opened(FOLDER_ON_SPARK, people_apart(), policy, request)) == expected


@pytest.fixture(scope="module")
def connected(spark_connect: str) -> Iterator[Engine]:
    """The engine on the far side of Spark Connect."""
    with choose.engine_of(Spark(remote=spark_connect)) as engine:
        yield engine


def test_a_count_and_a_release_are_the_same_over_spark_connect(
    connected: Engine, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    policy = load_policy(PEOPLE)
    here = opened("frame", people_apart(), policy, request)
    there = choose.open_table(kinds.parquet_folder(people_apart(), tmp_path), policy.schema, engine=connected)
    cells = Cells.of(policy.schema, {"age": 1, "zip": 1})
    assert as_counter(there.engine.count(there.rows, cells)) == as_counter(here.engine.count(here.rows, cells))
    assert released(policy, there) == released(policy, here)


@pytest.mark.parametrize("kind", SOURCES)
def test_every_engine_keeps_as_many_rows_of_a_person(kind: str, request: pytest.FixtureRequest) -> None:
    """A person's rows are equal, and no sample is drawn: whichever rows are chosen, the release is the same."""
    most = 3
    unit = {"column": "id", "max_rows": most}
    budget = {"unbounded": "public since 2020"}
    policy = load_policy(
        changed(
            PEOPLE, columns__id={"role": "identifier"}, dataset__unit=unit, release__k=5, release__rate=1, budget=budget
        )
    )
    some = people_apart().slice(0, 60)
    table = pa.concat_tables([some] * 5)
    kept = opened("frame", pa.concat_tables([some.filter(pa.compute.is_valid(some["id"]))] * most), policy, request)
    assert released(policy, opened(kind, table, policy, request)) == released(policy, kept)


@pytest.mark.parametrize("kind", ON_ONE_MACHINE)
@pytest.mark.parametrize(("method", "name"), FIRST)
def test_the_promise_and_the_claims_do_not_depend_on_the_source(
    method: str, name: str, kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    policy = load_policy(with_ledger(POLICIES[method][name], tmp_path))
    certificate = release(source_of(kind, rows(), request), policy).certificate
    assert certificate.guarantee == policy.method.guarantee(policy.schema)
    assert certificate.claims == policy.method.claims(policy.schema)
    assert certificate.chain == policy.method.chain(policy.schema)


def refusal(kind: str, table: pa.Table, policy: Policy, request: pytest.FixtureRequest) -> tuple[type, str]:
    def read() -> None:
        found = opened(kind, table, policy, request)
        found.engine.validate(found.rows, found.schema)

    with pytest.raises((SourceInvalid, SourceUnreadable, UnknownColumn)) as caught:
        read()
    return type(caught.value), str(caught.value)


@pytest.mark.parametrize("kind", SOURCES)
def test_values_that_cannot_be_read_are_refused_alike(kind: str, request: pytest.FixtureRequest) -> None:
    ages = pa.array(["7"] * 100 + ["forty"] + ["8"] * 99 + ["-"])
    table = rows().slice(0, 201).set_column(1, "age", ages)
    error, said = refusal(kind, table, load_policy(PEOPLE), request)
    assert error is SourceInvalid
    assert said.startswith("2 problems in the source; nothing was released and nothing was charged.")
    assert said.count("column age: cannot be read as integer") == 2
    assert "forty" not in said


@pytest.mark.parametrize("kind", SOURCES)
def test_a_column_that_is_not_there_is_refused_alike(kind: str, request: pytest.FixtureRequest) -> None:
    table = rows().rename_columns(["sex", "ages", "zip", "id", "bought"])
    assert refusal(kind, table, load_policy(PEOPLE), request) == (
        UnknownColumn,
        "there is no column age. Did you mean ages?",
    )


TYPED = [kind for kind in SOURCES if str(kind).removeprefix("spark-") not in ("csv", "sqlite", "frame")]


@pytest.mark.parametrize("kind", TYPED)
@pytest.mark.parametrize(
    ("stored", "error", "gist"),
    [
        (pa.array([1.5] * 400), SourceInvalid, "column age: cannot be read as integer"),
        (pa.array([[1]] * 400), SourceUnreadable, "column age is of type"),
    ],
    ids=["numbers that are not whole", "lists"],
)
def test_a_column_of_a_type_that_does_not_fit_is_refused_alike(
    stored: pa.Array, error: type, gist: str, kind: str, request: pytest.FixtureRequest
) -> None:
    found, said = refusal(kind, rows().set_column(1, "age", stored), load_policy(PEOPLE), request)
    assert found is error
    assert gist in said


@pytest.mark.parametrize("kind", SOURCES)
def test_whole_numbers_and_text_in_their_place_are_the_same(kind: str, request: pytest.FixtureRequest) -> None:
    policy = load_policy(PEOPLE)
    ages: Any = people_apart()["age"].cast(pa.int64())
    numbers = people_apart().set_column(1, "age", ages)
    expected = released(policy, opened("frame", people_apart(), policy, request))
    assert released(policy, opened(kind, numbers, policy, request)) == expected


@pytest.mark.parametrize("kind", SOURCES)
def test_the_same_content_has_the_same_digest_and_other_content_another(
    kind: str, request: pytest.FixtureRequest
) -> None:
    def digest(table: pa.Table) -> bytes:
        found = opened(kind, table, load_policy(PEOPLE), request)
        return found.engine.digest(found.rows)

    first = digest(rows())
    assert len(first) == 32
    assert digest(rows().slice(1)) != first
    if kind not in {"duckdb", "sqlite"}:  # whose files are never the same twice
        assert digest(rows()) == first
