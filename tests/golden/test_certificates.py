"""The golden certificate is read and verified; a guarantee that changes is noticed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from incrowd.core.certificate import VERSION
from incrowd.errors import UnsupportedVersion
from incrowd.verifier.check import Verdict
from incrowd.workflows.certificates import certificate_of, read_certificate
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.verify.verify import verify
from tests.golden.certificates.make import FOLDER
from tests.policies import PEOPLE

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = FOLDER / f"version-{VERSION}"
GUARANTEES = {
    "people": PEOPLE,
    "hospital": ROOT / "examples" / "hospital" / "policy.yaml",
    "lecture": ROOT / "examples" / "lecture" / "policy.yaml",
}


def guaranteed(name: str) -> dict[str, Any]:
    """What a policy guarantees, claims and does, as certificates say it."""
    policy = load_policy(GUARANTEES[name])  # type: ignore[arg-type]
    plan = policy.plan
    return {
        "guarantee": plan.guarantee.to_json(),
        "claims": [claim.to_json() for claim in plan.claims],
        "steps": [step.to_json() for step in plan.steps],
    }


def test_the_golden_certificate_is_verified() -> None:
    verification = verify(GOLDEN, trusted=GOLDEN / "key.pub")
    assert verification.passed
    passed = {finding.about for finding in verification.findings if finding.verdict is Verdict.PASSED}
    assert {"signature", "file data.csv", "claim: approximate differential privacy", "crowds in the file"} <= passed


def test_the_golden_certificate_is_written_as_it_was_read() -> None:
    text = (GOLDEN / "certificate.json").read_text(encoding="utf-8")
    assert read_certificate(GOLDEN).to_text() == text


@pytest.mark.parametrize("version", [1, 2])
def test_a_certificate_of_an_earlier_version_is_refused_by_name(version: int) -> None:
    plain = json.loads((GOLDEN / "certificate.json").read_text(encoding="utf-8")) | {"certificate": version}
    with pytest.raises(UnsupportedVersion, match=f"has version {version}; this incrowd reads version {VERSION} only"):
        certificate_of(plain)


@pytest.mark.parametrize("name", GUARANTEES)
def test_no_guarantee_changes_in_silence(name: str) -> None:
    """If this fails and the change is meant, write the new guarantee down and say so in CHANGELOG.md under Privacy."""
    told = json.loads((FOLDER / f"guarantee-{name}.json").read_text(encoding="utf-8"))
    assert guaranteed(name) == told
