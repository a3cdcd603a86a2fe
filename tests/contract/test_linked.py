"""What a method of linked tables must be: planned without rows, charged, certified, verified, and hard to forge."""

from __future__ import annotations

import dataclasses
import inspect
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

import incrowd
from incrowd.accounting.budget import Budget
from incrowd.core.claims.claim import claim_of
from incrowd.core.guarantee import Guarantee
from incrowd.core.steps.step import step_of
from incrowd.engines.local.engine import LOCAL
from incrowd.engines.local.views import DividedRows
from incrowd.errors import IncrowdError, InvalidParameter, RowsLeftOut
from incrowd.methods import LINKED
from incrowd.methods.synthesis.linked.output import LinkedOutput
from incrowd.methods.synthesis.linked.steps import OWNED, SINGLE_OWNER
from incrowd.verifier.check import Verdict
from incrowd.verifier.judge import statement_of
from incrowd.workflows.attack.attack import AttackOrder, attack_all
from incrowd.workflows.attack.inputs import AttackInput
from incrowd.workflows.certificates import read_certificate
from incrowd.workflows.policy.file import json_schema
from incrowd.workflows.policy.ledger import find_book, record_failure
from incrowd.workflows.policy.linked_tables import open_tables
from incrowd.workflows.policy.policy import Policy, load_policy
from incrowd.workflows.registry import check_of, method_class, vocabulary
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.outsiders import held_out_of
from incrowd.workflows.release.tables import ReleaseTerms, release_to
from incrowd.workflows.verify.verify import verify
from tests.contract.forging import caught, placed
from tests.linked import EXAMPLES, chosen, example, hospital, linked_files, linked_policy

DOCS = Path(__file__).resolve().parents[2] / "docs" / "methods"
CLASSES = [pytest.param(method_class(name), id=name) for name in LINKED]
SOME = ["one level", "two levels", "two levels by row ID", "values and constraints"]


def in_folder(name: str, folder: Path, **release: Any) -> Policy:
    """Write the tables of an example beside its policy, and return that."""
    linked_files(folder, hospital(40))
    return load_policy(linked_policy(name, folder, rounds=1, **release), folder=folder)


@pytest.fixture(scope="module", params=SOME)
def released(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Policy, Path]:
    folder = tmp_path_factory.mktemp("linked")
    policy = in_folder(request.param, folder, epsilon=50)
    release_to(None, policy, Destination(folder / "out", "csv"))
    return policy, folder / "out"


@pytest.mark.parametrize("method", CLASSES)
def test_parameters_are_fields_that_cannot_be_changed_and_the_docstring_states_the_guarantee(method: Any) -> None:
    assert method.__dataclass_params__.frozen
    assert inspect.signature(method.plan).parameters.keys() == {"self", "schema"}
    for word in ("Guarantee:", "Assumes:", "Source:"):
        assert word in (inspect.getdoc(method) or "")


@pytest.mark.parametrize("method", CLASSES)
def test_every_method_has_its_page_with_every_option_and_a_place_in_the_schema(method: Any) -> None:
    page = (DOCS / f"{method.name}.md").read_text(encoding="utf-8")
    names = [field.name for field in dataclasses.fields(method)]
    assert [name for name in names if f"| `{name}` |" not in page] == []
    assert method.name in (DOCS / "index.md").read_text(encoding="utf-8").splitlines()
    sections = json_schema()["properties"]["release"]["anyOf"]
    assert {"method", *names} in [set(section["properties"]) for section in sections if "properties" in section]


@pytest.mark.parametrize("name", EXAMPLES)
def test_guarantee_claims_and_steps_are_made_without_rows_and_survive_as_json(name: str) -> None:
    policy = example(name)
    plan, again = policy.plan, policy.method.plan(policy.schema)
    assert (plan.guarantee, plan.claims, plan.steps) == (again.guarantee, again.claims, again.steps)
    assert Guarantee.from_json(json.loads(json.dumps(plan.guarantee.to_json()))) == plan.guarantee
    known = vocabulary(policy.method.name)
    for claim in plan.claims:
        assert claim_of(json.loads(json.dumps(claim.to_json())), known.claims) == claim
        assert claim.unit == policy.schema.unit
    assert set(plan.claims[0].assumed) == set(map(str, plan.guarantee.assumes))
    assert tuple(step_of(json.loads(json.dumps(step.to_json())), known.steps) for step in plan.steps) == plan.steps
    assert OWNED in plan.guarantee.assumes
    assert (SINGLE_OWNER in plan.guarantee.assumes) == (EXAMPLES[name].get("below") == "row")


def test_a_release_is_verified_with_ledger_and_policy(released: tuple[Policy, Path]) -> None:
    policy, out = released
    result = verify(out, ledger=find_book(policy), policy=policy)
    assert result.verdict == "verified"
    unknown = {outcome.about for outcome in result.findings if outcome.verdict is Verdict.UNKNOWN}
    assert unknown <= {"assumption", "signature", "stated by the maker"}
    assert result.certificate.claims == policy.plan.claims
    names = {file.name for file in result.certificate.outputs}
    assert names == {"report.html", *(f"{name}.csv" for name in chosen(policy, hospital(1)))}


def test_no_key_of_the_source_leaves(released: tuple[Policy, Path]) -> None:
    policy, out = released
    for name in chosen(policy, hospital(1)):
        head, *lines = (out / f"{name}.csv").read_text(encoding="utf-8").splitlines()
        keys = [place for place, column in enumerate(head.split(",")) if column in ("patient", "stay")]
        assert lines
        assert all(line.split(",")[place].isdigit() for line in lines for place in keys)


def forged(out: Path, folder: Path, change: Callable[[dict[str, Any]], None]) -> bool:
    """Whether a changed certificate is still said to hold."""
    copy = folder / "copy"
    copy.mkdir(parents=True)
    for file in out.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    plain = json.loads((out / "certificate.json").read_text(encoding="utf-8"))
    change(plain)
    (copy / "certificate.json").write_text(json.dumps(plain), encoding="utf-8")
    try:
        return verify(copy).passed
    except IncrowdError:
        return False


def test_a_key_that_names_nobody_or_too_many_rows_of_one_person_are_found(released: tuple[Policy, Path]) -> None:
    _, out = released
    certificate, check = read_certificate(out), check_of("linked")
    statement = statement_of(certificate)
    files = tuple(out / file.name for file in certificate.outputs if file.name != "report.html")
    output = check.reopen(statement, files)
    assert check.recount(statement, output) is None

    def problem(table: str, column: str, value: Any, rows: int | None = None) -> str:
        whole = output.tables[table]
        place = whole.column_names.index(column)
        values = pa.array([value] * whole.num_rows if rows is None else [*whole[column].to_pylist()[:-1], value])
        changed = whole.set_column(place, column, values.cast(whole.schema.field(column).type))
        result = check.recount(statement, LinkedOutput({**output.tables, table: changed}))
        return "" if result is None else result.text

    assert problem("stays", "patient", 10**6, 1) == "a foreign key of stays names no row"
    assert problem("stays", "patient", 0, 1) == "a foreign key of stays names no row"
    assert problem("stays", "patient", None, 1) == "a key is missing"
    assert problem("stays", "stay", 1) == "the rows of stays are not numbered one after the other"
    assert problem("stays", "ward", "Z", 1) == "column 'stays.ward' shows a label that is not declared"
    if "procedures" in output.tables:
        assert problem("procedures", "stay", 10**6, 1) == "a foreign key of procedures names no row"
    else:
        assert problem("stays", "patient", 1) == "somebody has more rows in stays than are read of a person"


@pytest.mark.parametrize(
    "change",
    [
        lambda plain: plain["claims"][0]["not_protected"].pop(),
        lambda plain: plain["steps"][0]["tables"][1].update(max_rows=9),
        lambda plain: plain["steps"][0]["tables"][1].update(person=None),
        lambda plain: plain["steps"][2]["levels"][1].update(weight=1),
        lambda plain: plain["steps"][2].update(rho="1/50"),
        lambda plain: plain["steps"][3].update(names=["patients", "x"]),
        lambda plain: plain["evidence"]["tables"][1][0].update(scale="100"),
        lambda plain: plain["evidence"]["tables"][1].append({"columns": [0], "scale": "1"}),
        lambda plain: plain["evidence"]["rows"].__setitem__(0, 7),
        lambda plain: plain["evidence"].update({"people estimated": 7}),
        lambda plain: plain["evidence"].update({"error scales": ["1", "1", "1"]}),
        lambda plain: plain["evidence"].update({"note": "very good"}),
        lambda plain: plain["guarantee"]["assumes"].pop(),
    ],
    ids=range(13),
)
def test_a_word_changed_in_a_certificate_is_found(
    released: tuple[Policy, Path], tmp_path: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    assert not forged(released[1], tmp_path, change)


@pytest.mark.parametrize(
    "change",
    [
        {"margins of the errors": ["0.000001"] * 3},
        {"weights estimated": [10**9] * 2},
        {"weights estimated": [-1] * 2},
        {"tables": [[{"columns": [0], "scale": "1000000"}]] * 3},
    ],
)
def test_evidence_that_its_own_noise_cannot_give_is_noticed(
    released: tuple[Policy, Path], change: dict[str, Any]
) -> None:
    """The id does not name the evidence, so that nothing else of the certificate is changed."""
    plain = json.loads((released[1] / "certificate.json").read_text(encoding="utf-8"))
    number = len(plain["steps"][2]["levels"])
    evidence = {name: part[: number - (name == "weights estimated")] for name, part in change.items()}
    assert caught(plain) is None
    assert caught({**plain, "evidence": {**plain["evidence"], **evidence}}) == "steps"


def test_a_certificate_without_tables_is_refused_in_a_sentence(released: tuple[Policy, Path]) -> None:
    plain = json.loads((released[1] / "certificate.json").read_text(encoding="utf-8"))
    assert caught(placed(plain, ("steps", 0, "tables"), [])) == "InvalidParameter"


def test_tables_in_memory_are_given_by_name_and_come_back_by_name(tmp_path: Path) -> None:
    policy = load_policy(linked_policy("one level", tmp_path, rounds=1), folder=tmp_path)
    tables = hospital(30)
    frames = {"patients": tables["patients"].to_pandas(), "stays": tables["stays"]}
    with pytest.warns(RowsLeftOut, match="not read: 1 row of people with more than 4"):
        released = incrowd.release(frames, policy)
    assert set(released.result.tables) == {"patients", "stays"}
    assert released.certificate.method.name == "linked"
    assert "<table" in released._repr_html_()
    with pytest.raises(InvalidParameter, match="there is no table 'visits'"):
        incrowd.release({"visits": tables["stays"]}, policy)


def test_the_report_names_constraints_and_what_the_models_cannot_know(tmp_path: Path) -> None:
    policy = load_policy(linked_policy("values and constraints", tmp_path, rounds=1), folder=tmp_path)
    tables = hospital(30)
    with pytest.warns(RowsLeftOut):
        report = incrowd.release({name: tables[name] for name in ("patients", "stays")}, policy).report()
    for text in ("never ward C with urgent true", "day never falls within a parent", "What the models cannot know"):
        assert text in report


def test_what_is_refused_before_the_charge_costs_nothing(tmp_path: Path) -> None:
    policy = in_folder("one level", tmp_path)
    (tmp_path / "stays.csv").write_text("stay,patient,day,ward,urgent\ns1,p1,1,A\n", encoding="utf-8")
    with pytest.raises(IncrowdError):
        release_to(None, policy, Destination(tmp_path / "out"))
    book = find_book(policy)
    assert book is None or [entry for entry in book.entries(0) if entry.kind == "charge"] == []
    with pytest.raises(InvalidParameter, match="leave --table out"):
        release_to(None, policy, Destination(tmp_path / "out", table="postgresql://a@b/c::d"))


def test_a_key_is_paid_once_and_a_failed_attack_makes_a_release_another_run(tmp_path: Path) -> None:
    policy = in_folder("one level", tmp_path)
    again = [
        release_to(None, policy, Destination(tmp_path / "out", "csv"), terms=ReleaseTerms(key="march"))
        for _ in range(2)
    ]
    assert again[0].release.certificate == again[1].release.certificate
    book = find_book(policy)
    assert book is not None
    assert [entry.kind for entry in book.entries(0)].count("charge") == 1
    budget = Budget.of(1, "1e-6")
    book.grant(policy.name, budget, "owner", "another release")
    record_failure(policy)
    other = release_to(None, policy, Destination(tmp_path / "other", "csv"))
    assert "run again" in [step.kind for step in other.release.certificate.steps]
    outcome = verify(other.folder, policy=policy)
    assert outcome.passed, outcome.failure


def test_a_database_and_parquet_files_are_read_like_text(tmp_path: Path) -> None:
    import duckdb
    from pyarrow import parquet as pq

    tables = hospital(20)
    with duckdb.connect(str(tmp_path / "h.duckdb")) as connection:
        connection.register("source", tables["patients"])
        connection.execute("CREATE TABLE patients AS SELECT * FROM source")
    pq.write_table(tables["stays"], tmp_path / "stays.parquet")
    policy = linked_policy("one level", tmp_path, rounds=1)
    policy["source"] = {"path": "h.duckdb", "table": "patients"}
    policy["tables"]["stays"]["source"] = "stays.parquet"
    published = release_to(None, load_policy(policy, folder=tmp_path), Destination(tmp_path / "out"))
    assert verify(published.folder).passed
    assert isinstance(published.release.result.tables["stays"], pa.Table)


def test_nobody_who_is_held_out_takes_part(tmp_path: Path) -> None:
    """At ε = 1000 numbers of rows are those of the data; about half of the people, with all rows, are not there."""
    policy = in_folder("two levels", tmp_path, epsilon=1000)
    terms = ReleaseTerms(hold_out=Fraction(1, 2))
    published = release_to(None, policy, Destination(tmp_path / "out", "csv"), terms=terms)
    certificate = published.release.certificate
    assert "hold out" in [step.kind for step in certificate.steps]
    assert verify(published.folder, policy=policy).passed
    held = held_out_of(policy, certificate.id)
    tables = open_tables(policy, None, LOCAL)
    people, others = (
        {name for batch in DividedRows(tables[0], held, alone).batches(["patient"]) for name in batch[0].to_pylist()}
        for alone in (False, True)
    )
    assert len(people) + len(others) == 40
    assert 3 < len(others) < 37
    assert abs(published.release.result.tables["patients"].num_rows - len(people)) <= 1


def test_a_verbatim_copy_is_found_by_attacks_and_a_release_is_not(tmp_path: Path) -> None:
    """With the decade of birth above them most stays are unique, and a copy of the rows gives people away."""
    plain = linked_policy("two levels", tmp_path, rounds=1)
    plain["columns"]["born"] = {"type": "integer", "bounds": [0, 999], "hierarchy": {"intervals": [10]}}
    policy, groups = load_policy(plain, folder=tmp_path), [tmp_path, tmp_path / "others"]
    for seed, folder in enumerate(groups):
        folder.mkdir(exist_ok=True)
        linked_files(folder, with_births(hospital(400, seed), seed))
    release_to(None, policy, Destination(tmp_path / "out", "csv"))

    def leaks() -> set[str]:
        inputs = AttackInput(tmp_path / "out", None, policy, control=str(groups[1]))
        runs = attack_all(inputs.targets(), AttackOrder(("linkage", "closest-record", "membership"))).runs
        assert {run.table for run in runs} == {"patients", "stays", "procedures"}
        return {run.table for run in runs if run.finding.verdict == "leak"}

    assert leaks() == set()
    for name, table in with_births(hospital(400, 0), 0).items():
        keys = [column for column in ("patient", "stay") if column in table.column_names]
        columns = {column: [int(text[1:]) + 1 for text in table[column].to_pylist()] for column in keys}
        shown = [column for column in table.column_names if column not in (*keys, "day")]
        csv.write_csv(pa.table(columns | {column: table[column] for column in shown}), tmp_path / "out" / f"{name}.csv")
    assert leaks() >= {"stays", "procedures"}


def with_births(tables: dict[str, pa.Table], seed: int) -> dict[str, pa.Table]:
    """Return tables with a year of birth of each patient."""
    births = pa.array(np.random.default_rng(seed).integers(0, 1000, tables["patients"].num_rows))
    return tables | {"patients": tables["patients"].append_column("born", births)}
