"""Steps and claims of every table of a certain form are read back, and made again from steps alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from incrowd.core.claims.claim import claim_of
from incrowd.core.loss import Syntactic
from incrowd.core.plan import Plan
from incrowd.core.steps.rows import DRAFTED
from incrowd.core.steps.step import ClaimBasis, claims_of, fold, step_of
from incrowd.errors import InvalidParameter
from incrowd.methods.anonymity.cell_suppression.check import LeaveOutCells
from incrowd.methods.anonymity.full_domain import CutLevels
from incrowd.methods.anonymity.itemsets.check import CutItems
from incrowd.verifier.check import in_order
from incrowd.workflows.registry import check_of
from tests.contract.examples import POLICIES
from tests.methods.anonymity.syntactic.patients import EVERYTHING, LOCAL, MONDRIAN, SUPPRESSED, planned
from tests.policies import changed

METHODS = ("full-domain", "local-recoding", "mondrian", "cell-suppression", "itemsets")
CHECKS = {name: check_of(name) for name in METHODS}
TWO_ROWS = {"columns__id": {"role": "identifier"}, "dataset__unit": {"column": "id", "max_rows": 2}}
PATIENTS = {
    "everything": EVERYTHING,
    "suppressed": SUPPRESSED,
    "mondrian": MONDRIAN,
    "local": LOCAL,
    "two rows a person": changed(EVERYTHING, **TWO_ROWS),
    "drafted": changed(EVERYTHING, columns__sex__derived="rows", columns__ill__derived="rows"),
    "in days": changed(
        EVERYTHING, columns__pay={"role": "sensitive", "type": "date", "bounds": ["2020-01-01", "2020-12-31"]}
    ),
    "of all": changed(
        EVERYTHING,
        release__t="0.5",
        release__sensitive={"ill": {"distance": "hierarchical"}, "grade": {"harmless": ["low"]}},
    ),
}


def ways() -> Iterator[Any]:
    for method in CHECKS:
        for name, policy in POLICIES[method].items():
            yield pytest.param(policy, id=f"{method}-{name}")
    for name, policy in PATIENTS.items():
        yield pytest.param(policy, id=name)


@pytest.fixture(params=list(ways()))
def plan(request: pytest.FixtureRequest, tmp_path: Path) -> Plan:
    return planned(request.param, tmp_path)[0]


def test_every_step_is_read_back(plan: Plan) -> None:
    check = CHECKS[plan.method]
    plain = [json.loads(json.dumps(step.to_json())) for step in plan.steps]
    assert tuple(step_of(each, check.steps) for each in plain) == plan.steps
    assert in_order(plan.steps, check.order)
    for each in plain:
        with pytest.raises(InvalidParameter):
            step_of({**each, "certified": "yes"}, check.steps)


def test_keys_in_another_order_mean_the_same(plan: Plan) -> None:
    check = CHECKS[plan.method]
    text = json.dumps([step.to_json() for step in plan.steps], sort_keys=True)
    steps = tuple(step_of(each, check.steps) for each in json.loads(text))
    assert fold(steps, plan.unit) == plan.guarantee
    assert claims_of(ClaimBasis(plan.guarantee, steps)) == plan.claims


def test_every_claim_is_read_back_and_follows_from_the_steps(plan: Plan) -> None:
    check = CHECKS[plan.method]
    plain = [json.loads(json.dumps(claim.to_json())) for claim in plan.claims]
    assert tuple(claim_of(each, check.claims) for each in plain) == plan.claims
    assert claims_of(ClaimBasis(fold(plan.steps, plan.unit), plan.steps)) == plan.claims
    for each in plain:
        for name in each["parameters"]:
            less = {key: value for key, value in each["parameters"].items() if key != name}
            try:
                assert claim_of({**each, "parameters": less}, check.claims) not in plan.claims
            except InvalidParameter:
                continue
        with pytest.raises(InvalidParameter):
            claim_of({**each, "parameters": {**each["parameters"], "certified": "yes"}}, check.claims)


def test_every_step_and_claim_has_words(plan: Plan) -> None:
    assert all(step.title and step.sentence.endswith(".") for step in plan.steps)
    assert all(claim.sentence.endswith(".") for claim in plan.claims)


def cut_of(policy: dict[str, Any], folder: Path) -> dict[str, Any]:
    plain: dict[str, Any] = planned(policy, folder)[0].steps[1].to_json()
    return plain


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("until/c of ill", None),
        ("until/c of ill", "8/2"),
        ("until/c of ill", "-4"),
        ("until/c of ill", 4),
        ("until/k", None),
        ("until/k", 0),
        ("until/k", "5"),
        ("until/l", True),
        ("until/t of pay", None),
        ("until/distance of ill", "far"),
        ("until/distance of pay", "near"),
        ("until/harmless of ill", []),
        ("until/harmless of ill", ["healthy", "flu"]),
        ("until/harmless of ill", "healthy"),
        ("until/unheard of", "2"),
        ("until/average risk", "2"),
        ("until/unique by", "guess"),
        ("until/unique among", None),
        ("until/population", None),
        ("until/most presence", "11/10"),
        ("until/l of sex", 2),
        ("sensitive", ["ill", "grade"]),
        ("suppression", "none"),
        ("suppression", "2"),
        ("suppression", "1/20 or so"),
        ("suppression", "2/40"),
        ("suppression", None),
        ("shown as", "ranges"),
        ("at", "the levels that everyone likes"),
        ("combinations", 0),
        ("combinations", "12"),
        ("quality", None),
        ("ordered", {"sex": "integer"}),
        ("ordered", {"grade": "integer", "pay": "integer"}),
        ("ordered", {"pay": "number"}),
        ("places", {"sex": {"in order": ["F", "M"]}}),
        ("places/ill/in order", "flu"),
    ],
)
def test_forged_cuts_are_refused(tmp_path: Path, path: str, value: Any) -> None:
    plain = json.loads(json.dumps(cut_of(SUPPRESSED, tmp_path)))
    place: Any = plain
    *above, last = path.split("/")
    for step in above:
        place = place[step]
    if value is None:
        del place[last]
    else:
        place[last] = value
    with pytest.raises(InvalidParameter):
        step_of(plain, CHECKS["full-domain"].steps)


@pytest.mark.parametrize(
    ("path", "value", "part"),
    [
        ("until/c of ill", "2", "loss"),
        ("until/harmless of ill", ["flu", "healthy"], "loss"),
        ("until/distance of grade", "equal", "loss"),
        ("until/most presence", "1/2", "loss"),
        ("suppression", "0", "claims"),
        ("columns", ["sex"], "claims"),
        ("ordered", {}, "claims"),
    ],
)
def test_another_demand_is_another_guarantee_or_another_claim(tmp_path: Path, path: str, value: Any, part: str) -> None:
    plan = planned(SUPPRESSED, tmp_path)[0]
    plain = json.loads(json.dumps(plan.steps[1].to_json()))
    place: Any = plain
    *above, last = path.split("/")
    for step in above:
        place = place[step]
    place[last] = value
    steps = (plan.steps[0], step_of(plain, CHECKS["full-domain"].steps), plan.steps[2])
    same = fold(steps, plan.unit) == plan.guarantee, claims_of(ClaimBasis(plan.guarantee, steps)) == plan.claims
    assert same == ((False, False) if part == "loss" else (True, False))


def test_what_is_demanded_is_the_loss_in_its_order(tmp_path: Path) -> None:
    loss = planned(changed(SUPPRESSED, columns__sex__derived="rows"), tmp_path)[0].guarantee.loss
    assert isinstance(loss, Syntactic)
    assert [name for name, _ in loss.parameters] == [
        "k", "l", "average risk", "unique", "unique among", "unique by", "k-map", "least presence", "most presence",
        "population", "t of grade", "distance of grade", "beta of grade", "enhanced beta of grade",
        "disclosure of grade", "c of ill", "recursive l of ill", "t of ill", "distance of ill", "harmless of ill",
        "entropy l of pay", "t of pay", DRAFTED,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("until", "missing", "importance"),
    [
        ({"k": 0}, "value", {}),
        ({"k of any 1": 2}, "value", {}),
        ({"k": 2, "k of any 3": 2}, "value", {}),
        ({"k": 2, "k of any 0": 2}, "value", {}),
        ({"k": 2, "k of any 01": 2}, "value", {}),
        ({"k": 2, "l": 2}, "value", {}),
        ({"k": 2}, "nothing", {}),
        ({"k": 2}, "value", {"ill": "2"}),
        ({"k": 2}, "value", {"age": "0"}),
        ({"k": 2}, "value", {"age": 2}),
    ],
)
def test_forged_suppression_is_refused(until: dict[str, Any], missing: str, importance: dict[str, Any]) -> None:
    plain = {"step": "leave out cells", "columns": ["sex", "age"], "until": {"k": 2}, "missing": "value"}
    assert isinstance(step_of({**plain, "importance": {"age": "2"}}, CHECKS["cell-suppression"].steps), LeaveOutCells)
    forged = {**plain, "until": until, "missing": missing, "importance": importance}
    with pytest.raises(InvalidParameter):
        step_of(forged, CHECKS["cell-suppression"].steps)


def test_sizes_of_subsets_are_told_as_numbers_are_ordered() -> None:
    columns = tuple(map(str, range(12)))
    until = {"k of any 10": 2, "k": 1, "k of any 2": 3}
    plain = {"step": "leave out cells", "columns": list(columns), "until": until, "missing": "value", "importance": {}}
    step = step_of(plain, CHECKS["cell-suppression"].steps)
    assert isinstance(step, LeaveOutCells)
    assert list(step.terms) == ["k", "k of any 2", "k of any 10"]


@pytest.mark.parametrize("change", [{"k": 0}, {"m": 0}, {"suppression": "few"}, {"k": "4"}])
def test_forged_cuts_of_items_are_refused(change: dict[str, Any]) -> None:
    plain = CutItems("ill", ";", ("sex",), 4, 2, Fraction(0)).to_json()
    assert step_of(plain, CHECKS["itemsets"].steps).to_json() == plain
    with pytest.raises(InvalidParameter):
        step_of({**plain, **change}, CHECKS["itemsets"].steps)


def test_what_may_be_left_out_is_an_exact_share() -> None:
    cut = CutLevels(
        columns=("sex",),
        sensitive=(),
        until={"k": 2},
        quality="loss",
        combinations=2,
        suppression=Fraction(1, 20),
    )
    assert cut.left_out == Fraction(1, 20)
    with pytest.raises(InvalidParameter):
        replace(cut, suppression=Fraction(21, 20))
