from __future__ import annotations

import json
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.web.studio.jobs import Job, Jobs, State
from incrowd.web.studio.payments import pay, payment_key
from incrowd.workflows.policy.policy import Policy, load_policy
from incrowd.workflows.release.tables import release

_POLICY = {
    "incrowd": 1,
    "dataset": {"name": "people"},
    "columns": {"sex": {"categories": ["f", "m"]}},
    "release": {"method": "safe", "rate": "1/2", "epsilon": 1, "delta": "1e-4"},
    "budget": {"epsilon": 10, "delta": "1/10"},
}


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    (tmp_path / "policy.yaml").write_text(json.dumps(_POLICY))
    (tmp_path / "people.csv").write_text("sex\n" + "f\nm\n" * 300)
    return load_policy(tmp_path / "policy.yaml")


class Studio:
    """A studio with jobs of its own, as each process has them."""

    def __init__(self) -> None:
        self.jobs = Jobs()

    def pay(self, policy: Policy, key: str, work: Any) -> Job:
        request: Any = SimpleNamespace(jobs=self.jobs, value={"key": key, "name": "people"}.get)
        return pay(request, policy, "release", "Releasing", work)


def test_two_studios_on_one_folder_pay_once_with_one_key(policy: Policy) -> None:
    studios, going, charged, key = (
        (Studio(), Studio()),
        threading.Event(),
        threading.Event(),
        payment_key(policy, "release"),
    )

    def slow(_tell: Any) -> Any:
        going.set()
        charged.wait(60)
        return release(policy.folder / "people.csv", policy)

    first = studios[0].pay(policy, key, slow)
    assert going.wait(60)
    second = studios[1].jobs.wait(studios[1].pay(policy, key, lambda _tell: pytest.fail("paid twice")).id)
    assert (second.state, "another studio" in str(second.problem)) == (State.FAILED, True)
    charged.set()
    assert studios[0].jobs.wait(first.id).state is State.DONE
    with pytest.raises(Exception, match="the policy or the ledger changed"):
        studios[1].pay(policy, key, lambda _tell: pytest.fail("paid twice"))
    assert sum(entry.kind == "charge" for entry in Ledger.open(policy.ledger_address).entries()) == 1


def test_a_key_is_checked_again_when_the_payment_begins(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    studio, key = Studio(), payment_key(policy, "release")
    keys = iter([key, "another"])
    monkeypatch.setattr("incrowd.web.studio.payments.payment_key", lambda *_: next(keys))
    job = studio.jobs.wait(studio.pay(policy, key, lambda _tell: pytest.fail("paid by an old key")).id)
    assert "the policy or the ledger changed" in str(job.problem)
