"""A method that only these tests know: registered by one line, it gets everything that a method has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from incrowd import methods
from incrowd.errors import InvalidParameter
from incrowd.workflows.plan.forecast import plan
from incrowd.workflows.policy.file import json_schema
from incrowd.workflows.policy.ledger import find_book
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release, release_to
from incrowd.workflows.report.page import public_report
from incrowd.workflows.verify.verify import verify
from tests.contract.examples import rows
from tests.contract.forging import caught, forgeries
from tests.contract.test_forgery import SAID
from tests.policies import PEOPLE, changed

TOY = changed(PEOPLE, release={"method": "noisy-total", "epsilon": "1/2"})
PERSON = {"columns__id": {"role": "identifier"}, "dataset__unit": {"column": "id", "max_rows": 2}}


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(methods, "METHODS", {**methods.METHODS, "noisy-total": ("tests.contract.toy", "NoisyTotal")})


def test_it_has_a_policy_section_and_a_json_schema() -> None:
    schemas = json.dumps(json_schema()["properties"]["release"])
    assert "NoisyTotalSection" in schemas
    assert load_policy(TOY).method.name == "noisy-total"
    with pytest.raises(InvalidParameter, match=r"'epsilom' is not known here\. Did you mean 'epsilon'\?"):
        load_policy(changed(TOY, release__epsilom=1))
    with pytest.raises(InvalidParameter, match="a total needs an epsilon above 0"):
        load_policy(changed(TOY, release__epsilon=0))


def test_it_has_a_plan_with_a_price() -> None:
    found = plan(load_policy(TOY))
    assert float(found.epsilon) == pytest.approx(0.5)
    assert found.allowed


@pytest.mark.parametrize(
    "how", [{}, PERSON, {"dataset__unit": {"adjacency": "replace-one"}}], ids=["row", "two", "one"]
)
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_it_is_released_certified_reported_and_verified(how: dict[str, object], form: str, tmp_path: Path) -> None:
    policy = load_policy(changed(TOY, **how))
    published = release_to(rows(), policy, Destination(tmp_path / "out", form))
    assert "The number of rows gets integer Laplace noise" in (tmp_path / "out" / "report.html").read_text()
    found = verify(tmp_path / "out", ledger=find_book(policy), policy=policy)
    assert found.verdict == "verified", found.findings
    assert published.release.certificate.claims[0].kind == "pure differential privacy"


def test_it_is_released_in_memory() -> None:
    released = release(rows(), TOY)
    assert abs(released.result.table["total"][0].as_py() - len(rows())) < 200  # misses with e^-99
    assert released.certificate.method.name == "noisy-total"
    assert public_report(released.certificate, released.result).startswith("<!doctype html>")


def test_its_certificate_cannot_be_forged(tmp_path: Path) -> None:
    release_to(rows(), TOY, Destination(tmp_path / "out", "csv"))
    plain = json.loads((tmp_path / "out" / "certificate.json").read_text())
    assert caught(plain) is None
    missed = [each.name for each in forgeries(plain) if each.top in (*SAID, "steps") and not caught(each.plain)]
    assert not missed
