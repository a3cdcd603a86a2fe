"""Adapters: all that touches the package.  A change of its interfaces is a change of this file and of no record.

Each function returns the record of one example: texts, truth values, lists and mappings, as `plain` makes them.
"""

from __future__ import annotations

import atexit
import io
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, chdir, redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from incrowd.accounting.accountant import charge_of
from incrowd.cli.main import VERBS, main
from incrowd.core.loss import to_json
from incrowd.core.plan import Plan
from incrowd.core.rounding import exact
from incrowd.core.table import Table
from incrowd.engines.local.engine import LocalEngine
from incrowd.engines.readers.sources import open_source
from incrowd.engines.sql.duckdb import warehouse
from incrowd.engines.sql.engine import StoredTable
from incrowd.errors import IncrowdError
from incrowd.governance.consent.event import Decided
from incrowd.methods import GRAPHS, METHODS
from incrowd.methods.local.estimates import estimates_of
from incrowd.methods.local.mechanisms.randomizer import Family
from incrowd.queries.batch import batch
from incrowd.queries.classical_answers import protection_of
from incrowd.queries.combined_measurement import measure
from incrowd.queries.language.interpretation import interpret
from incrowd.queries.language.understanding import understand
from incrowd.queries.query import QueryTerms
from incrowd.queries.query_sets import plain_query
from incrowd.workflows.coarsen.method import Coarser, coarsen
from incrowd.workflows.consent.snapshot import admit
from incrowd.workflows.graph.reading import open_graph, read_graph
from incrowd.workflows.local.planning import plan_locally
from incrowd.workflows.local.survey_file import survey_of
from incrowd.workflows.plan.forecast import plan as forecast
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.query.classical import _Classical
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release_to
from tests.consents import consented
from tests.contract.agreed import AgreedCoins
from tests.contract.forging import fitting
from tests.contract.questions import tables
from tests.facts.plain import digest, facts, number, numbers, shortened, table
from tests.queries.language.hospital import CATALOG

SEED = 29
Record = dict[str, Any]
Decision = tuple[str, Sequence[str], Mapping[str, Any]]


def known_names() -> dict[str, tuple[str, ...]]:
    """Return the names that must have records: methods of tables and of graphs, randomizers, verbs."""
    return {
        "methods": tuple(METHODS),
        "graphs": tuple(GRAPHS),
        "randomizers": tuple(str(family) for family in Family),
        "verbs": tuple(VERBS),
    }


def of_policy(mapping: Mapping[str, Any], tables_: Sequence[pa.Table], declared: Mapping[str, Any]) -> Record:
    """Return what a policy of a table plans, what is expected of its `declared` variant, and what it releases."""
    policy = load_policy(mapping)
    return {
        **_of_plan(policy.plan),
        "expected": _expected(declared),
        "outputs": [_released(policy, rows) for rows in tables_],
    }


_RECORDED_AS = {"QueryRefused": "QuestionRefused", "QueryFailed": "QuestionFailed", "QueryStopped": "QuestionStopped"}
"""Classes that have another name now than in the records."""


def recorded_class(value: object) -> str:
    """Return the name of a value's class, as records have it."""
    return _RECORDED_AS.get(type(value).__name__, type(value).__name__)


def _released(policy: Any, rows: pa.Table) -> Record:
    """Return what is released of some rows, or how they are refused."""
    table_ = Table(policy.schema, open_source(rows), LocalEngine())
    try:
        if policy.plan.examine is not None:
            policy.plan.examine(table_)
        return _of_output(policy.plan.release(table_, AgreedCoins(SEED)), policy.plan)
    except IncrowdError as error:
        return {"refused": recorded_class(error)}


def of_graph(mapping: Mapping[str, Any]) -> Record:
    """Return what a policy of a graph plans and releases."""
    policy = load_policy(mapping)
    graph = read_graph(policy, open_graph(policy, LocalEngine()))
    if policy.plan.examine is not None:
        policy.plan.examine(graph)
    return {
        **_of_plan(policy.plan),
        "output": _of_output(policy.plan.release(graph, AgreedCoins(SEED)), policy.plan),
    }


def of_question(sql: str, terms: Mapping[str, str], most_groups: int | None = None) -> Record:
    """Return what a question about the hospital plans, how exact it expects to be, and its answer."""
    question = interpret(sql, CATALOG, most_groups)
    units = {str(each.dataset): each.unit for each in CATALOG.relations if each.dataset in question.datasets}
    made = measure(question, next(iter(units.values())), _terms(terms))
    charged = {name: _charge(guarantee) for name, guarantee in made.plan.over(units).items()}
    return {
        **_of_plan(made.plan),
        "charged": charged,
        "expected": shortened([facts(each.to_json()) for each in made.expected]),
        "output": _of_answers(made.plan),
    }


def of_batch(sqls: Sequence[str], terms: Mapping[str, str]) -> Record:
    """Return what several questions that are paid for as one plan and answer."""
    questions = [understand(sql, CATALOG) for sql in sqls]
    made = batch(questions, CATALOG[questions[0].tables[0]].unit, _terms(terms), CATALOG)
    expected = [facts(each.to_json()) for part in made.expected for each in part]
    return {**_of_plan(made.plan), "expected": shortened(expected), "output": _of_answers(made.plan)}


def of_classical(sqls: Sequence[str], protection: str, mapping: Mapping[str, Any], rows: pa.Table) -> list[Record]:
    """Return what classical answers to questions, asked one after the other, plan and say."""
    from incrowd.queries.query import Catalog, Relation

    policy = load_policy(mapping)
    relation = Relation(policy.name, policy.schema, dataset=policy.name)
    records = []
    with warehouse({policy.name: StoredTable(open_source(rows), policy.schema)}) as asked:
        for sql in sqls:
            question = plain_query(sql, Catalog((relation,)))
            plan = _Classical(
                question, relation, protection_of(protection), b"s" * 32, "sqlite:///classical.sqlite"
            ).plan
            answer = plan.release(asked, AgreedCoins(SEED))
            value = getattr(answer, "value", recorded_class(answer))
            records.append({**_of_plan(plan), "question": sql, "output": facts({"value": value})})
    return records


def of_survey(plain: Mapping[str, Any], answers: Mapping[str, Sequence[str]]) -> Record:
    """Return what a survey plans, the reports of people with these answers, and what is estimated from them."""
    survey = survey_of(plain, Path()).survey
    reports = survey.randomize(answers, AgreedCoins(SEED))
    columns = {"question": "text", "report": "report"}
    return {
        **_of_plan(survey.plan),
        "reports": table(columns, ([each["question"], each["report"]] for each in reports)),
        "estimates": [facts(each.to_json()) for each in estimates_of(survey, reports, Fraction(1, 20))],
    }


def of_local_plan(domain: int, epsilon: str, people: int, delta: str | None) -> Record:
    """Return the randomizer that is best for a domain, and the errors of all."""
    stated: Record = facts(plan_locally(domain, epsilon, people, delta).to_json())
    return stated


def of_coarser(mapping: Mapping[str, Any], rows: pa.Table, levels: Mapping[str, int], columns: Sequence[str]) -> Record:
    """Return what a coarser table of a release guarantees and holds; the release is made in the current folder."""
    policy_file = Path("policy.yaml")
    policy_file.write_text(json.dumps(mapping), encoding="utf-8")
    with patch("incrowd.workflows.release.perform.SystemCoins", lambda: AgreedCoins(SEED)):
        release_to(rows, policy_file, Destination(Path("out"), "csv"))
    made = coarsen(Path("out"), load_policy(policy_file), Coarser(levels, tuple(columns)), Path("coarser"))
    certificate = made.certificate
    return {
        **_of_guarantee(certificate.guarantee),
        "claims": _of_claims(certificate.claims),
        "steps": [facts(step.to_json()) for step in certificate.steps],
        "output": _of_tables(made.result),
    }


def of_consent(mapping: Mapping[str, Any], rows: pa.Table, decisions: Sequence[Decision]) -> Record:
    """Return what is planned and released of the rows of people who consented, after decisions of people by id."""
    made = consented(dict(mapping), Path())
    for decided, ids, more in decisions:
        made.decide(Decided(decided), ids, **more)
    policy = load_policy(Path("data") / "policy.yaml")
    admission = admit(policy)
    assert admission is not None
    engine = LocalEngine()
    taking = engine.admitted(engine.open(rows), admission.by(policy.schema[str(policy.schema.unit.column)]))
    output = policy.plan.release(Table(policy.schema, taking, engine), AgreedCoins(SEED))
    return {
        **_of_plan(policy.plan),
        "people": number(len(admission.subjects)),
        "output": _of_output(output, policy.plan),
    }


@dataclass(frozen=True)
class Printed:
    """What a command came to: its exit code, the class of its error, and what it printed."""

    code: int
    error: str | None
    text: str


def printed_by(words: Sequence[str]) -> Printed:
    """Run a command in this process and the current folder."""
    kinds: list[str] = []

    def fail(_message: str, kind: str, code: int, _as_json: bool) -> int:
        kinds.append(kind)
        return code

    text = io.StringIO()
    nobody = patch("sys.stdin", io.StringIO())  # a command may ask somebody at a terminal for what is missing
    with nobody, patch("incrowd.cli.main.fail", fail), redirect_stdout(text), redirect_stderr(io.StringIO()):
        code = main(list(words))
    return Printed(code, kinds[-1] if kinds else None, text.getvalue())


def of_command(words: Sequence[str]) -> Record:
    """Return the exit code of a command and the class of its error, if it ends in one."""
    printed = printed_by(words)
    return {"exit": str(printed.code), "error": printed.error and _RECORDED_AS.get(printed.error, printed.error)}


def fill_folder(folder: Path, gated: Mapping[str, Any]) -> None:
    """Add releases of the good policies of a folder, and a policy with a registry of consent."""
    with chdir(folder), patch("incrowd.workflows.release.perform.SystemCoins", lambda: AgreedCoins(SEED)):
        for name, release in {"good": "out", "learned": "model", "randomized": "randomized"}.items():
            done = printed_by(
                ["release", "--policy", f"{name}.yaml", "--out", release, "--format", "csv", "--no-spreadsheet"]
            )
            assert done.code == 0, f"{name}.yaml was not released: {done}"
        (folder / "gated").mkdir()
        consented(dict(gated), folder / "gated", ["p1", "p2"])


def forge(folder: Path) -> None:
    """Let the strongest claim of a certificate state half the epsilon, under an id that fits."""
    plain = json.loads((folder / "certificate.json").read_text(encoding="utf-8"))
    parameters = plain["claims"][0]["parameters"]
    parameters["epsilon"] = str(Decimal(parameters["epsilon"]) / 2)
    (folder / "certificate.json").write_text(json.dumps(fitting(plain)), encoding="utf-8")


def _terms(plain: Mapping[str, str]) -> QueryTerms:
    return QueryTerms(**{name: exact(value) for name, value in plain.items()})


def _of_plan(plan: Plan) -> Record:
    """Return all that is known before a row is read, without its sentences."""
    least = plan.smallest_class
    return {
        **_of_guarantee(plan.guarantee),
        "claims": _of_claims(plan.claims),
        "steps": [facts(step.to_json()) for step in plan.steps],
        "smallest class": None if least is None else number(least),
    }


def _of_guarantee(guarantee: Any) -> Record:
    unit = guarantee.unit.to_json()
    return {
        "loss": _numbers(to_json(guarantee.loss)),
        "delta": number(guarantee.delta),
        "charged": _charge(guarantee),
        "unit": {name: str(part) for name, part in unit.items() if name != "adjacency"},
        "adjacency": unit["adjacency"],
        "assumptions": number(len(guarantee.assumes)),
    }


def _numbers(loss: Any) -> Any:
    """Return the tree of a loss with one spelling of each number; nothing is left out."""
    if isinstance(loss, Mapping):
        return {name: _numbers(part) for name, part in loss.items()}
    if isinstance(loss, list):
        return [_numbers(part) for part in loss]
    stated = facts(loss)
    return loss if stated is None else stated


def _charge(guarantee: Any) -> Record:
    spend = charge_of(guarantee.loss, guarantee.delta, guarantee.unit.adjacency)
    return {"epsilon": number(spend.epsilon), "delta": number(spend.delta)}


def _of_claims(claims: Sequence[Any]) -> list[Record]:
    return [
        {
            "kind": claim.kind,
            **(facts(claim.parameters) or {}),
            "conditions": {
                str(status): number(count)
                for status, count in Counter(each.status for each in claim.preconditions).items()
            },
            "left open": number(len(claim.not_protected)),
        }
        for claim in claims
    ]


def _expected(mapping: Mapping[str, Any]) -> Record:
    """Return the numbers of `plan` for a policy that says how many rows and people there are."""
    made = forecast(load_policy(mapping))
    return {
        "allowed": made.allowed,
        "rows": None if made.expectation is None else facts(made.expectation.to_json()),
        "model": None if made.rehearsed is None else facts(asdict(made.rehearsed)),
        "sampled": facts([asdict(each) for each in made.nearest]),
        "biased": facts([asdict(each) for each in made.biased]),
    }


def _of_output(output: Any, plan: Plan) -> Record:
    private = charge_of(plan.guarantee.loss, plan.guarantee.delta, plan.guarantee.unit.adjacency).epsilon.is_finite()
    return {
        "tables": _of_tables(output),
        "documents": [digest(_document(text)) for text in getattr(output, "documents", {}).values()],
        "evidence": facts(output.evidence(plan.unit, private=private)),
    }


def _document(text: str | bytes) -> Any:
    """Return the numbers of a document that is JSON, else its bytes."""
    if isinstance(text, bytes) or not text.startswith("{"):
        return (text.encode() if isinstance(text, str) else text).hex()
    return numbers(json.loads(text))


def _of_tables(output: Any) -> list[Record]:
    return [_of_arrow(part.to_arrow()) for part in output.parts]


def _of_arrow(released: pa.Table) -> Record:
    kinds = {
        each.name: each.type.value_type if pa.types.is_dictionary(each.type) else each.type for each in released.schema
    }
    columns = [column.to_pylist() for column in released.columns]
    return table({name: str(kind) for name, kind in kinds.items()}, zip(*columns, strict=True))


def _of_answers(plan: Plan) -> list[Record]:
    answers = plan.draw(_hospital(), AgreedCoins(SEED)).answers
    return [_of_arrow(answer.to_arrow()) for answer in answers]


_OPEN = ExitStack()


@cache
def _hospital() -> Any:
    """Return the tables of the hospital, opened once; they are closed with the process."""
    stored = {name: StoredTable(open_source(each), CATALOG[name].schema) for name, each in tables().items()}
    atexit.register(_OPEN.close)
    return _OPEN.enter_context(warehouse(stored))
