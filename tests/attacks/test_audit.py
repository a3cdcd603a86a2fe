"""An audit through the public interface finds a method that keeps less than it claims; passing proves nothing."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import incrowd
from incrowd.attacks.audit import AuditCounts, AuditResult, audit, one_run, two_worlds
from incrowd.errors import InvalidParameter
from incrowd.workflows.attack.audit import audit_policy, rarest
from tests.policies import PEOPLE, changed, people
from tests.statistics.alarm import FALSE_ALARM

SURE = 1 - FALSE_ALARM


def draw(chance: np.random.Generator, truth: float, scale: float) -> float:
    return truth + float(chance.laplace(0.0, scale))


def test_noise_of_half_the_scale_is_found_out() -> None:
    chance = np.random.default_rng(1)
    broken = audit((partial(draw, chance, 1.0, 0.3), partial(draw, chance, 0.0, 0.3)), 4000, confidence=SURE)
    assert broken.epsilon > 1.0
    assert "Refuted" in broken.sentence(1.0)
    fine = audit((partial(draw, chance, 1.0, 1.0), partial(draw, chance, 0.0, 1.0)), 4000, confidence=SURE)
    assert 0.5 < fine.epsilon < 1.0
    assert "proves nothing" in fine.sentence(1.0)
    assert fine.epsilon < fine.ceiling


def test_one_run_with_many_canaries_finds_a_mechanism_that_betrays_more() -> None:
    chance = np.random.default_rng(2)
    canaries, guesses = 2000, 400
    coins = chance.integers(0, 2, canaries) * 2 - 1
    seen = coins + chance.laplace(0.0, 2.0 / 3.0, canaries)
    sure = np.argsort(-np.abs(seen))[:guesses]
    right = int((np.sign(seen[sure]) == coins[sure]).sum())
    assert 1.0 < one_run(canaries, guesses, right, confidence=SURE) < 3.0


def test_a_release_without_noise_is_found_out_and_one_by_the_book_is_not() -> None:
    rows = people(8)
    exact = incrowd.load_policy(
        changed(
            PEOPLE, release={"method": "suppressed-histogram", "columns": ["sex"], "k": 1}, budget={"unbounded": "x"}
        )
    )
    found = audit_policy(exact, rows, rarest(exact, rows), 30)
    assert found.epsilon == pytest.approx(found.ceiling)
    safe = incrowd.load_policy(changed(PEOPLE))
    assert audit_policy(safe, rows, 0, 5).epsilon == 0.0


def test_an_audit_needs_rows_and_whole_numbers() -> None:
    rows, policy = people(4), incrowd.load_policy(changed(PEOPLE))
    with pytest.raises(InvalidParameter, match="place of a row"):
        audit_policy(policy, rows, 4, 5)
    owned = incrowd.load_policy(changed(PEOPLE, columns__id={"role": "identifier"}, dataset__unit={"column": "id"}))
    with pytest.raises(InvalidParameter, match="person ID column"):
        audit_policy(owned, rows, 0, 5)
    with pytest.raises(InvalidParameter):
        AuditCounts(5, 4, 0, 4)
    with pytest.raises(InvalidParameter):
        two_worlds(AuditCounts(1, 4, 0, 4), 1.0)
    with pytest.raises(InvalidParameter):
        one_run(10, 11, 5)


def test_an_audit_never_says_what_epsilon_is() -> None:
    said = AuditResult(0.0, 3.3, 1e-5, 0.95, "a count").sentence()
    assert said.startswith("No violation found")
    assert "at most epsilon 3.3" in said
