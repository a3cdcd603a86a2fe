"""A decision that arrives while a release reads the registry is neither lost nor half seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from incrowd.governance.consent.event import Decided
from incrowd.governance.consent.registry import Registry
from incrowd.workflows.consent.snapshot import ConsentSnapshot, admit, eligible
from tests.consent_race import race
from tests.consents import GATED, Consented, consented


def admission_of(made: Consented) -> ConsentSnapshot:
    admission = admit(made.policy)
    assert admission is not None
    return admission


@pytest.mark.parametrize("when", ["before the clock", "after the clock"])
def test_a_withdrawal_that_arrives_beside_the_clock_counts_at_the_next_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    made, clock = consented(GATED, tmp_path, ["p0", "p1"]), Registry.clock

    def interrupted(registry: Registry) -> str:
        if when == "before the clock":
            made.decide(Decided.WITHDRAW, ["p0"])
        at = clock(registry)
        if when == "after the clock":
            made.decide(Decided.WITHDRAW, ["p0"])
        return at

    with monkeypatch.context() as patched:
        patched.setattr(Registry, "clock", interrupted)
        first = admission_of(made)
    assert eligible(made.registry, first.gate)[0] == first.subjects, "what the certificate names is what took part"
    second = admission_of(made)
    assert second.subjects == {second.key.pseudonym("p1")}
    assert eligible(made.registry, second.gate)[0] == second.subjects


def test_a_process_that_reads_beside_one_that_writes_is_never_behind(tmp_path: Path) -> None:
    decisions, readings, stale = race(tmp_path, 0, least=60)
    assert decisions == 60
    assert readings > 0
    assert stale == 0
