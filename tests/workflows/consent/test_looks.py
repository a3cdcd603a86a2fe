"""Whoever looks at the data of a gated policy sees people who consent and nobody else; and so does a model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pcsv

from incrowd.core.steps.around import gate_of
from incrowd.engines.local.engine import LOCAL
from incrowd.engines.readers.sources import open_source
from incrowd.engines.settings import open_table
from incrowd.governance.consent.event import Decided
from incrowd.verifier.check import Verdict
from incrowd.workflows.attack.inputs import AttackInput
from incrowd.workflows.consent.snapshot import admit
from incrowd.workflows.plan.explore import explore
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.learn import learn_to
from incrowd.workflows.release.prepare import Background, PolicyOrder, prepare
from incrowd.workflows.release.tables import release_to
from incrowd.workflows.report.render import render_internal
from incrowd.workflows.verbs import assess, check
from incrowd.workflows.verify.verify import verify
from tests.consents import FORM, GATED, consented, known_people
from tests.contract.agreed import CoinsApart
from tests.policies import changed

ROWS = known_people()
HALF = [f"p{number}" for number in range(0, 600, 2)]
TAKING_PART = ROWS.filter(pa.array([number % 2 == 0 for number in range(600)]))


def test_a_check_and_a_search_count_people_who_consent_now(tmp_path: Path) -> None:
    made = consented(FORM, tmp_path, HALF)
    assert check(ROWS, made.policy, recoded=True).rows == len(HALF)
    assert explore(ROWS, made.policy).rows == len(HALF)
    made.decide(Decided.WITHDRAW, HALF[:7])
    assert check(ROWS, made.policy, recoded=True).rows == len(HALF) - 7
    assert check(ROWS.drop_columns(["id"]), made.policy, recoded=True).rows == 600, "these rows are nobody's"


def test_an_assessment_and_an_attack_are_about_people_who_consented_then(tmp_path: Path) -> None:
    made = consented(FORM, tmp_path, HALF)
    (tmp_path / "out").mkdir()
    published = release_to(ROWS, made.policy, Destination(tmp_path / "out" / "first", "csv"))
    made.decide(Decided.WITHDRAW, HALF[:40])
    found = assess(published.folder, made.policy, ROWS)
    alone = assess(published.folder, made.policy, TAKING_PART)
    assert found.rows == len(HALF)
    assert found.to_json() == alone.to_json()
    people, _ = AttackInput(published.folder, None, made.policy)._everybody(open_source(ROWS))
    assert people.num_rows == len(HALF)


def test_an_internal_report_sets_people_who_consented_beside_the_release(tmp_path: Path) -> None:
    made = consented(FORM, tmp_path, HALF)
    (tmp_path / "out").mkdir()
    for name, rows in (("all", ROWS), ("some", TAKING_PART)):
        (tmp_path / name).mkdir()
        pcsv.write_csv(rows, tmp_path / name / "people.csv")
    published = release_to(ROWS, made.policy, Destination(tmp_path / "out" / "first", "csv"))
    pages = [
        render_internal(published.folder, made.policy, str(tmp_path / name / "people.csv"), tmp_path / f"{name}.html")
        for name in ("all", "some")
    ]
    texts = [page.read_text(encoding="utf-8").replace(str(tmp_path), "") for page in pages]
    assert texts[0] == texts[1]


LEARNING = changed(
    GATED,
    release={"method": "regressor", "target_column": "age", "columns": ["sex"], "epsilon": 2, "delta": "1e-4"},
)


def test_a_model_is_learned_from_people_who_consent_alone(tmp_path: Path) -> None:
    made = consented(LEARNING, tmp_path, HALF)
    order = PolicyOrder.of(made.policy.plan, made.policy, Background(None, admit(made.policy)))
    ready = prepare(order, ROWS, LOCAL)
    alone = open_table(TAKING_PART, made.policy.schema)
    plan = made.policy.plan
    gated = plan.draw(ready.rows, CoinsApart(5))
    assert gated.to_arrow() == plan.draw(alone, CoinsApart(5)).to_arrow()
    assert gated.to_arrow() != plan.draw(replace(ready.rows, rows=open_source(ROWS)), CoinsApart(5)).to_arrow()


def test_a_model_of_a_gated_policy_is_certified_and_verifies(tmp_path: Path) -> None:
    made = consented(LEARNING, tmp_path, HALF)
    (tmp_path / "out").mkdir()
    published = learn_to(ROWS, made.policy, tmp_path / "out" / "model")
    gate = gate_of(published.release.certificate.steps)
    assert gate is not None
    assert gate.settled
    found = verify(published.folder, policy=made.policy)
    assert [each for each in found.findings if each.verdict is Verdict.FAILED] == []
