"""Every survey that can be opened has a certificate that verifies; what cannot be judged is refused at once."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from incrowd.core.steps.step import ClaimBasis
from incrowd.errors import InvalidParameter
from incrowd.methods.local.mechanisms.ratio import LARGEST_EPSILON
from incrowd.methods.local.survey.output import CHECK
from incrowd.methods.local.survey.steps import ShuffledPrivacy
from incrowd.verifier.check import Verdict
from incrowd.verifier.files import file_of
from incrowd.workflows.certificates import read_certificate
from incrowd.workflows.local.opening import open_survey
from incrowd.workflows.local.survey_file import survey_of
from incrowd.workflows.policy.ledger import find_book
from incrowd.workflows.verify.verify import verify
from tests.contract.forging import fitting
from tests.surveys import SHUFFLED, TRAVEL, survey_file


@settings(max_examples=25)
@given(
    categories=st.sampled_from([2, 3, 4, 5, 9, 30]),
    epsilon=st.floats(0.02, LARGEST_EPSILON).map(lambda number: f"{number:.3f}"),
    honest=st.integers(2, 500),
    others=st.integers(0, 50),
    delta=st.sampled_from(["9/10", "1/10", "1e-3", "1e-6", "1e-12", "1e-20"]),
)
@example(categories=4, epsilon="4", honest=900, others=100, delta="1e-6")
@example(categories=3, epsilon="28", honest=2, others=0, delta="1e-20")
def test_the_claim_of_a_shuffled_batch_is_derived_again_within_its_tolerance(
    categories: int, epsilon: str, honest: int, others: int, delta: str
) -> None:
    asked = {"categories": [f"v{number}" for number in range(categories)], "mechanism": "response"}
    shuffled = {"batch": str(honest + others), "honest": str(honest), "delta": delta}
    told = {"survey": "1", "name": "one", "epsilon": epsilon, "questions": {"a": asked}, "shuffled": shuffled}
    plan = survey_of(told, Path()).survey.plan
    (claim,) = (claim for claim in plan.claims if isinstance(claim, ShuffledPrivacy))
    assert CHECK.recompute(claim, ClaimBasis(plan.guarantee, plan.steps, plan.numbers)) is None


def test_a_batch_of_a_thousand_with_four_categories_is_verified(tmp_path: Path) -> None:
    shuffled = {"batch": "1000", "honest": "900", "delta": "1e-6"}
    opened = open_survey(survey_file(SHUFFLED | {"epsilon": "4", "shuffled": shuffled}, tmp_path))
    assert verify(opened.folder, ledger=find_book(opened.file)).verdict == "verified"


@pytest.mark.parametrize("epsilon", ["100000", "1e300", "29", "28.0000000000000000001"])
def test_a_certificate_with_an_epsilon_too_large_to_judge_is_refused_at_once(epsilon: str, tmp_path: Path) -> None:
    """Without a bound the sum of the exponential has 800,000 terms at 100,000."""
    opened = open_survey(survey_file(TRAVEL, tmp_path))
    plain = json.loads(opened.certificate.to_text())
    plain["steps"][0]["epsilon"] = epsilon
    forged = tmp_path / "forged.json"
    forged.write_text(json.dumps(plain))
    with pytest.raises(InvalidParameter, match="epsilon above 28 for one report"):
        read_certificate(forged)


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"epsilon": "28.01"}, "above 28"),
        ({"epsilon": None, "odds": "2000000000000"}, "above 28"),
        ({"epsilon": f"1.{'3' * 50}"}, "at most 40 decimals"),
        ({"shuffled": {"batch": "20", "delta": "1e-21"}}, "at least 1e-20"),
    ],
)
def test_a_survey_that_could_not_be_verified_cannot_be_opened(told: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        survey_file(TRAVEL | told)
    assert survey_file(TRAVEL | {"epsilon": str(LARGEST_EPSILON)}).survey.plan.claims


BATCHES = {
    "survey": "1",
    "name": "habits",
    "epsilon": "4",
    "questions": {"ever": {"categories": ["a", "b", "c", "d"]}},
    "shuffled": {"batch": "1000", "honest": "900", "delta": "1e-6"},
    "budget": {"epsilon": "10", "delta": "1e-3"},
}


def test_a_survey_that_claims_more_honest_people_than_its_definition_fails(tmp_path: Path) -> None:
    """Four times the people would make the claim far stronger; its numbers fit each other."""
    two = BATCHES | {"questions": {"ever": {"categories": ["a", "b"]}}}  # derived in a tenth of the time of four
    file, larger = survey_of(two, tmp_path / "one"), {"batch": "4000", "honest": "3600", "delta": "1e-6"}
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
    opened = open_survey(file)
    assert verify(opened.folder, policy=file).passed
    forged = open_survey(survey_of(two | {"shuffled": larger}, tmp_path / "two"))
    plain = json.loads((forged.folder / "certificate.json").read_text(encoding="utf-8"))
    collect = dict(plain["steps"][0], survey=opened.certificate.to_json()["steps"][0]["survey"])
    plain = fitting({**plain, "steps": [collect, *plain["steps"][1:]], "policy_hash": file.survey.id})
    for name in ("survey.json", "data.csv"):
        shutil.copyfile(opened.folder / name, forged.folder / name)
        new = file_of(forged.folder / name)
        plain["outputs"] = [
            {"name": name, "sha256": new.sha256, "bytes": new.bytes} if item["name"] == name else item
            for item in plain["outputs"]
        ]
    (forged.folder / "certificate.json").write_text(json.dumps(plain), encoding="utf-8")
    failures = {outcome.about for outcome in verify(forged.folder).findings if outcome.verdict is Verdict.FAILED}
    assert "definition" in failures
    with_file = verify(forged.folder, policy=file).findings
    assert {outcome.about for outcome in with_file if outcome.verdict is Verdict.FAILED} >= {"definition", "policy"}
