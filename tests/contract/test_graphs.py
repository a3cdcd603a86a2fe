"""What every method of graphs must be: planned without a graph, charged, certified, verified, and hard to forge."""

from __future__ import annotations

import dataclasses
import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from incrowd.core.claims.claim import claim_of
from incrowd.core.guarantee import Guarantee
from incrowd.core.steps.step import step_of
from incrowd.methods import GRAPHS
from incrowd.methods.graphs.shared.steps import NODES
from incrowd.verifier.check import Verdict
from incrowd.workflows.graph.release import release_graph
from incrowd.workflows.policy.file import json_schema
from incrowd.workflows.policy.ledger import find_book
from incrowd.workflows.policy.policy import Policy, load_policy
from incrowd.workflows.registry import method_class, vocabulary
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.verify.verify import verify
from tests.graphs import EXAMPLES, example_graph, graph_files, graph_policy

DOCS = Path(__file__).resolve().parents[2] / "docs" / "methods"
CLASSES = [pytest.param(method_class(name), id=name) for name in GRAPHS]


@pytest.fixture(params=EXAMPLES)
def policy(request: pytest.FixtureRequest, tmp_path: Path) -> Policy:
    unit, release = EXAMPLES[request.param]
    graph_files(tmp_path, example_graph(request.param))
    return load_policy(graph_policy(tmp_path, release, unit))


def released(policy: Policy, folder: Path, form: str = "csv") -> Path:
    release_graph(policy, Destination(folder / "out", form))
    return folder / "out"


def test_every_method_of_graphs_has_examples() -> None:
    assert {release["method"] for _, release in EXAMPLES.values()} == set(GRAPHS)


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


def test_guarantee_claims_and_steps_are_made_without_a_graph_and_survive_as_json(policy: Policy) -> None:
    plan, again = policy.plan, policy.method.plan(policy.schema).led_by(policy.graph.connect)  # type: ignore[union-attr]
    assert (plan.guarantee, plan.claims, plan.steps) == (again.guarantee, again.claims, again.steps)
    assert Guarantee.from_json(json.loads(json.dumps(plan.guarantee.to_json()))) == plan.guarantee
    known = vocabulary(policy.method.name)
    for claim in plan.claims:
        assert claim_of(json.loads(json.dumps(claim.to_json())), known.claims) == claim
        assert claim.unit == policy.schema.unit
        assert claim.theorem
        assert (NODES in claim.not_protected) == policy.schema.unit.kind.of_edges
    assert set(plan.claims[0].assumed) == set(map(str, plan.guarantee.assumes))
    assert tuple(step_of(json.loads(json.dumps(step.to_json())), known.steps) for step in plan.steps) == plan.steps


def test_a_release_is_verified_with_ledger_and_policy(policy: Policy, tmp_path: Path) -> None:
    out = released(policy, tmp_path, "parquet")
    found = verify(out, ledger=find_book(policy), policy=policy)
    assert found.passed
    unknown = {each.about for each in found.findings if each.verdict is Verdict.UNKNOWN}
    assert unknown - {"assumption", "signature", "claim: switched edges", "claim: random edges"} == set()
    assert found.certificate.claims == policy.plan.claims


def test_a_word_changed_in_a_certificate_is_found(policy: Policy, tmp_path: Path) -> None:
    out = released(policy, tmp_path)
    file = out / "certificate.json"
    plain = json.loads(file.read_text(encoding="utf-8"))
    plain["claims"][0]["not_protected"] = plain["claims"][0]["not_protected"][:-1]
    file.write_text(json.dumps(plain), encoding="utf-8")
    assert not verify(out).passed


def test_a_line_left_out_of_a_file_is_found(policy: Policy, tmp_path: Path) -> None:
    out = released(policy, tmp_path)
    file = min(out.glob("data*.csv"))
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    file.write_text("".join(lines[:-1]), encoding="utf-8")
    assert not verify(out).passed


def test_no_name_and_no_scale_of_smooth_noise_leaves(policy: Policy, tmp_path: Path) -> None:
    out = released(policy, tmp_path)
    certificate = (out / "certificate.json").read_text(encoding="utf-8")
    for file in out.glob("data*.csv"):
        assert "id" not in file.read_text(encoding="utf-8").splitlines()[0].split(",")
    if "triangles" in certificate:
        claim = json.loads(certificate)["claims"][0]
        assert "scale" not in claim["parameters"]
        assert '"scale"' not in certificate
