from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from incrowd.accounting.suppression import tight_delta
from incrowd.core.loss import Crowd, Sampled
from incrowd.errors import InvalidParameter
from incrowd.workflows.policy.policy import Policy, load_policy
from incrowd.workflows.rules.explain import explain
from incrowd.workflows.rules.grammar import Rule, Zeros
from tests.plans import steps_json


def policy(rule: str | Rule, folder: Path) -> Policy:
    file = folder / "policy.yaml"
    file.write_text(explain(rule).policy, encoding="utf-8")
    return load_policy(file)


def test_a_rule_is_crowd_blending_with_its_least_published_count() -> None:
    found = explain("counts of 7 or fewer become 0, then round to 5")
    assert found.guarantees[0].startswith("One such table is (8, 0)-crowd-blending")
    assert "post-processing" in found.guarantees[1]
    assert any("An epsilon" in limit for limit in found.not_guaranteed)


def test_the_overlap_warning_counts_with_the_rule_s_own_numbers() -> None:
    text = explain("minimum cell size 11").overlap
    assert "11 people live in v and one in w" in text
    assert "says 12" in text
    assert "incrowd coarsen" in text


def test_a_rule_that_shows_zeros_guarantees_nothing_about_single_people() -> None:
    found = explain("counts of 1 to 4 are suppressed")
    assert found.guarantees[0].startswith("Nothing")
    assert found.sampled == ()
    assert found.to_json()["crowd_blending"] is False


def test_a_rule_that_says_nothing_about_zeros_gets_a_note() -> None:
    assert "empty cells" in explain("minimum cell size 5").notes[0]
    assert explain("counts below 5 become 0").notes == ()


def test_what_a_sample_would_add_lies_on_the_tight_curve() -> None:
    rows = {row.rate: row for row in explain("minimum cell size 20", "1e-6").sampled}
    tenth = rows[Fraction(1, 10)]
    assert tenth.epsilon == pytest.approx(0.18299, rel=1e-4)
    assert tight_delta.delta(20, "0.1", tenth.epsilon or 0) <= 1e-6
    assert tenth.delta_at_one == tight_delta.delta(20, "0.1", 1)
    assert rows[Fraction(1, 2)].epsilon is not None
    assert explain("k = 5").sampled[-1].epsilon is None  # (1/2)^5 is above 1e-6


def test_a_rule_with_a_sample_states_its_epsilon_rounded_up() -> None:
    text = explain("k = 20 with 10 % sample").guarantees[1]
    assert "(0.182989, 1e-06)-differentially private" in text or "(0.18299, 1e-06)" in text
    assert "no epsilon" in explain("k = 5 with 10 % sample").guarantees[1]


@pytest.mark.parametrize("delta", ["0", "1", "-1"])
def test_a_delta_that_is_no_chance_is_refused(delta: str) -> None:
    with pytest.raises(InvalidParameter, match="delta"):
        explain("k = 5", delta)


def test_the_policy_of_a_rule_loads_and_promises_what_was_explained(tmp_path: Path) -> None:
    loaded = policy("counts of 7 or fewer become 0, then round to 5", tmp_path)
    assert loaded.method.plan(loaded.schema).promise.loss == Crowd(8)
    assert steps_json(loaded.method, loaded.schema)[-1]["round"] == 5
    assert loaded.budget is not None
    assert loaded.budget.unbounded


@pytest.mark.parametrize(
    "rule", [Rule(5, rate=Fraction(1, 10)), Rule(20, 10, Fraction(1, 10)), Rule(2, None, Fraction(9, 10))]
)
def test_the_policy_of_a_rule_with_a_sample_has_a_delta_that_some_epsilon_reaches(rule: Rule, tmp_path: Path) -> None:
    loaded = policy(rule, tmp_path)
    promise = loaded.method.plan(loaded.schema).promise
    assert rule.rate is not None
    assert promise.loss == Sampled(rule.rate, Crowd(rule.minimum))


def test_rules_by_numbers_say_the_same_as_rules_in_words() -> None:
    words = explain("counts of 7 or fewer become 0, then round to 5")
    assert explain(Rule(8, 5, zeros=Zeros.HIDDEN)) == words
