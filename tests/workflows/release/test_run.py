"""The road of every release: what is needed more than once is computed once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from incrowd.core.certificate import Certificate
from incrowd.core.plan import Plan
from incrowd.store.chain import Chain
from incrowd.workflows.consent import snapshot
from incrowd.workflows.graph.release import release_graph
from incrowd.workflows.local.opening import open_survey
from incrowd.workflows.local.survey_file import survey_of
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release, release_to
from tests.consents import GATED, consented, known_people
from tests.graphs import graph_files, graph_policy, karate
from tests.policies import PEOPLE, changed, people, with_ledger

BUDGET = {"epsilon": 100, "delta": "0.1"}
SURVEY = {"survey": "1", "name": "coins", "odds": "3", "questions": {"ever": {"categories": ["yes", "no"]}}}
ONCE = {"ledger": 1, "claims": 1, "certificate": 1}


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often a ledger is opened, claims are computed, a certificate is encoded and a registry is read."""
    made = Counter[str]()

    def counting(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **named: Any) -> Any:
            made[name] += 1
            return work(*arguments, **named)

        return counted

    opened, claims = Chain.__dict__["open"].__func__, Plan.__dict__["claims"].fget
    monkeypatch.setattr(Chain, "open", classmethod(counting("ledger", opened)))
    monkeypatch.setattr(Plan, "claims", property(counting("claims", claims)))
    monkeypatch.setattr(Certificate, "to_json", counting("certificate", Certificate.to_json))
    monkeypatch.setattr(snapshot, "admitted_at", counting("registry", snapshot.admitted_at))
    return made


def test_a_release_into_a_folder_opens_the_ledger_once(tmp_path: Path, counts: Counter[str]) -> None:
    policy = with_ledger(changed(PEOPLE, budget=BUDGET), tmp_path)
    release_to(people(), policy, Destination(tmp_path / "first"))
    counts.clear()
    release_to(people(), policy, Destination(tmp_path / "second"))
    assert counts == ONCE


def test_a_release_in_memory_opens_the_ledger_once(tmp_path: Path, counts: Counter[str]) -> None:
    policy = with_ledger(changed(PEOPLE, budget=BUDGET), tmp_path)
    release(people(), policy)
    counts.clear()
    release(people(), policy)
    assert counts == ONCE


def test_a_release_of_a_graph_opens_the_ledger_once(tmp_path: Path, counts: Counter[str]) -> None:
    graph_files(tmp_path, karate())
    policy = load_policy(graph_policy(tmp_path, {"method": "degree-distribution", "epsilon": 1}))
    release_graph(policy, Destination(tmp_path / "out"))
    assert counts == ONCE | {"ledger": 2}  # the first is the look for a ledger that is not there yet


def test_a_survey_opens_its_ledger_once(tmp_path: Path, counts: Counter[str]) -> None:
    open_survey(survey_of(SURVEY, tmp_path))
    assert counts == ONCE | {"ledger": 2}


def test_who_consented_is_read_once(tmp_path: Path, counts: Counter[str]) -> None:
    made = consented(GATED, tmp_path, [f"p{number}" for number in range(0, 600, 2)])
    counts.clear()
    release_to(known_people(), made.policy, Destination(tmp_path / "out"))
    assert counts["registry"] == 1
