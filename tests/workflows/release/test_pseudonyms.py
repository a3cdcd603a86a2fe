"""Identifiers under keyed pseudonyms: a claim about form, said as such."""

import hashlib
import hmac
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from incrowd.core.loss import Crowd, Sampled
from incrowd.errors import InvalidParameter
from incrowd.verifier.check import Verdict
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.tables import release
from incrowd.workflows.verify.verify import verify

KEY = bytes(range(32))
SITES = pa.table({"site": ["St. Anne"] * 300 + ["St. Paul"] * 300, "sex": ["F", "M"] * 300})


def policy(folder: Path, **changes: Any) -> dict[str, Any]:
    (folder / "site.key").write_bytes(KEY)
    site = {"role": "identifier", "hierarchy": {"pseudonym": str(folder / "site.key")}}
    return {
        "incrowd": 1,
        "dataset": {"name": "sites"},
        "columns": {"site": site, "sex": {"categories": ["F", "M"]}},
        "release": {"method": "safe", "rate": "0.5", "epsilon": 1, "delta": "1e-6"},
        "ledger": f"sqlite:///{folder}/ledger.sqlite",
        **changes,
    }


def test_an_identifier_with_a_key_is_released_under_its_pseudonym(tmp_path: Path) -> None:
    released = release(SITES, policy(tmp_path))
    expected = {hmac.new(KEY, name.encode(), hashlib.sha256).hexdigest()[:32] for name in ("St. Anne", "St. Paul")}
    assert set(released.result.to_arrow()["site"].to_pylist()) == expected


def test_the_certificate_says_that_a_pseudonym_is_a_matter_of_form(tmp_path: Path) -> None:
    certificate = release(SITES, policy(tmp_path)).certificate
    claim = next(claim for claim in certificate.claims if claim.kind == "pseudonymization")
    assert claim.parameters["columns"] == ["site"]
    assert any("have the key" in text for text in map(str, claim.not_protected))
    assert KEY.hex() not in certificate.to_text()
    (tmp_path / "certificate.json").write_text(certificate.to_text())
    found = {each.about: each.verdict for each in verify(tmp_path / "certificate.json").findings}
    assert found["claim: pseudonymization"] is Verdict.PASSED


def test_a_pseudonym_does_not_change_the_guarantee(tmp_path: Path) -> None:
    """The key is drawn without the rows, so the recoding is as blind as any other."""
    loaded = load_policy(policy(tmp_path))
    loss = loaded.method.plan(loaded.schema).guarantee.loss
    assert isinstance(loss, Sampled)
    assert isinstance(loss.inner, Crowd)


def test_the_name_behind_a_pseudonym_is_never_released(tmp_path: Path) -> None:
    asked = policy(tmp_path)
    asked["release"]["levels"] = {"site": 0}
    with pytest.raises(InvalidParameter, match="level 0 would release the name"):
        release(SITES, asked)


def test_who_tells_people_apart_cannot_also_be_released(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="person ID column"):
        load_policy(policy(tmp_path, dataset={"name": "sites", "unit": {"column": "site"}}))


def test_a_short_or_missing_key_is_refused(tmp_path: Path) -> None:
    asked = policy(tmp_path)
    (tmp_path / "site.key").write_bytes(b"secret")
    with pytest.raises(InvalidParameter, match="at least 32 bytes"):
        load_policy(asked)
    (tmp_path / "site.key").unlink()
    with pytest.raises(InvalidParameter, match=r"key file .* cannot be read"):
        load_policy(asked)
