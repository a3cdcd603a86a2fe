"""A method and a mask that only these tests know: each is one module, and one line registers it with everything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from incrowd import methods
from incrowd.core.loss import Syntactic
from incrowd.errors import InvalidParameter
from incrowd.workflows.plan.forecast import plan
from incrowd.workflows.policy.file import json_schema
from incrowd.workflows.policy.ledger import find_book
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.registry import method_class
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release, release_to
from incrowd.workflows.report.page import public_report
from incrowd.workflows.verify.verify import verify
from tests.contract import test_forgery, test_methods
from tests.contract.examples import ROWS, rows
from tests.contract.forging import caught, forgeries
from tests.policies import PEOPLE, changed
from tests.tables import Batches

TOY = changed(PEOPLE, release={"method": "noisy-total", "epsilon": "1/2"})
MASK = changed(
    PEOPLE,
    release={"method": "prefix", "columns": ["zip"], "levels": {"zip": 1}},
    budget={"unbounded": "a toy for tests"},
)
PERSON = {"columns__id": {"role": "identifier"}, "dataset__unit": {"column": "id", "max_rows": 2}}
EACH_TOY = pytest.mark.parametrize("toy", [TOY, MASK], ids=["method", "mask"])
EACH_UNIT = pytest.mark.parametrize(
    "unit", [{}, PERSON, {"dataset__unit": {"adjacency": "replace-one"}}], ids=["row", "two", "one"]
)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    toys = {"noisy-total": "tests.contract.toy", "prefix": "tests.contract.toy_mask"}
    monkeypatch.setattr(methods, "METHODS", {**methods.METHODS, **toys})


def test_it_has_a_policy_section_and_a_json_schema() -> None:
    schemas = json.dumps(json_schema()["properties"]["release"])
    assert "NoisyTotalSection" in schemas
    assert "PrefixSection" in schemas
    assert load_policy(TOY).method.name == "noisy-total"
    with pytest.raises(InvalidParameter, match=r"'epsilom' is not known here\. Did you mean 'epsilon'\?"):
        load_policy(changed(TOY, release__epsilom=1))
    with pytest.raises(InvalidParameter, match="a total needs an epsilon above 0"):
        load_policy(changed(TOY, release__epsilon=0))
    with pytest.raises(InvalidParameter, match="only released text has a prefix"):
        load_policy(changed(MASK, release__columns=["age"])).plan  # noqa: B018


def test_it_has_a_plan_with_a_price() -> None:
    planned = plan(load_policy(TOY))
    assert float(planned.epsilon) == pytest.approx(0.5)
    assert planned.allowed


def test_a_mask_has_a_plan_that_claims_no_epsilon() -> None:
    planned = load_policy(MASK).plan
    assert planned.settings == {"prefix": "zip", "length": 1}
    assert [claim.kind for claim in planned.claims] == ["masked values"]
    assert planned.guarantee.loss == Syntactic("perturbation", (("cut text", ("zip",)),))


@EACH_TOY
@EACH_UNIT
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_it_is_released_certified_reported_and_verified(
    toy: Any, unit: dict[str, object], form: str, tmp_path: Path
) -> None:
    policy = load_policy(changed(toy, **unit))
    published = release_to(rows(), policy, Destination(tmp_path / "out", form))
    sentence = published.release.certificate.steps[-1 if toy is TOY else -2].sentence
    assert sentence.split(" in ")[0] in (tmp_path / "out" / "report.html").read_text()
    result = verify(tmp_path / "out", ledger=find_book(policy), policy=policy)
    assert result.verdict == "verified", result.findings
    kind = "pure differential privacy" if toy is TOY else "masked values"
    assert published.release.certificate.claims[0].kind == kind


def test_it_is_released_in_memory() -> None:
    released = release(rows(), TOY)
    assert abs(released.result.table["total"][0].as_py() - len(rows())) < 200  # misses with e^-99
    assert released.certificate.method.name == "noisy-total"
    assert public_report(released.certificate, released.result).startswith("<!doctype html>")


def test_a_mask_is_released_in_memory() -> None:
    released = release(rows(), MASK)
    prefixes = [code if code is None else code[:1] for code in rows()["zip"].to_pylist()]
    assert sorted(released.result.to_arrow()["zip"].to_pylist(), key=str) == sorted(prefixes, key=str)
    assert public_report(released.certificate, released.result).startswith("<!doctype html>")


@EACH_TOY
def test_the_contract_of_every_method_holds(toy: Any, tmp_path: Path) -> None:
    policy = load_policy(toy)
    outcome = test_methods.outcome_of(policy, Batches(rows(), ROWS))
    test_methods.test_parameters_are_fields_that_cannot_be_changed(type(policy.method))
    test_methods.test_an_instance_cannot_be_changed(policy)
    test_methods.test_the_docstring_states_guarantee_assumptions_and_source(type(policy.method))
    test_methods.test_the_guarantee_is_made_without_a_table_and_is_always_the_same(policy)
    test_methods.test_claims_and_steps_are_always_the_same_and_survive_as_json(policy)
    test_methods.test_every_assumption_of_the_guarantee_stands_in_its_strongest_claim(policy)
    test_methods.test_a_release_does_not_depend_on_batches_or_formats(policy, outcome, tmp_path)
    test_methods.test_a_release_does_not_depend_on_how_cells_are_counted(policy, outcome)
    test_methods.test_nothing_in_a_plan_keeps_a_sentence_in_a_field(policy)


@EACH_TOY
def test_its_certificate_cannot_be_forged(toy: Any, tmp_path: Path) -> None:
    """By the contract of every method: the certificate alone, the policy and the ledger show each change."""
    made = test_forgery.release_of(toy, tmp_path)
    judged = [(forgery, caught(forgery.plain)) for forgery in forgeries(made.plain)]
    test_forgery.test_the_certificate_itself_is_right(made)
    test_forgery.test_the_certificate_alone_shows_every_change_of_what_it_says(made, judged)
    test_forgery.test_with_the_policy_every_leaf_of_the_plan_is_shown(made, judged)
    test_forgery.test_the_ledger_shows_every_change(made, judged)
    unseen = [forgery.name for forgery, problem in judged if forgery.top == "steps" and problem is None]
    assert toy is MASK or not unseen


@EACH_TOY
def test_verify_uses_nothing_of_its_algorithm(toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release_to(rows(), toy, Destination(tmp_path / "out", "csv"))
    cls = method_class(toy["release"]["method"])
    for name in ("plan", "release", "step", "masked"):
        monkeypatch.setattr(cls, name, _fail, raising=False)
    assert verify(tmp_path / "out").failure is None


def _fail(*_: Any) -> Any:
    raise AssertionError("verify called the algorithm of the method")


def test_a_mask_is_one_file_of_at_most_80_lines() -> None:
    source = Path(__file__).with_name("toy_mask.py").read_text(encoding="utf-8")
    assert len(source.splitlines()) <= 80
