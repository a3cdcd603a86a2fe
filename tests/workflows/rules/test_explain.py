from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.accounting.suppression import tight_delta
from incrowd.core.loss import Crowd, Sampled
from incrowd.errors import InvalidParameter
from incrowd.workflows.policy.policy import Policy, load_policy
from incrowd.workflows.rules.explain import explain
from incrowd.workflows.rules.overlap import telling_count
from incrowd.workflows.rules.rule import Rounding, Rule, Zeros
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
    assert "says 12, a table by v says 11" in text
    assert "incrowd coarsen" in text


def test_the_overlap_example_rounds_as_the_rule_does() -> None:
    text = explain("counts of 7 or fewer become 0, then round to 5").overlap
    assert "says 10, a table by v says 10: rounding hides the one person there" in text
    assert "suppose 12 people live in v and one in w. A table by {v, w} together says 15, a table by v says 10" in text


@pytest.mark.parametrize("rounding", Rounding)
@given(minimum=st.integers(1, 60), base=st.integers(2, 20))
def test_the_two_numbers_of_the_overlap_are_published_and_differ(minimum: int, base: int, rounding: Rounding) -> None:
    rule = Rule(minimum, base, zeros=Zeros.HIDDEN, rounding=rounding)
    count = telling_count(rule)
    assert count >= rule.minimum
    assert rule.multiple(count) != rule.multiple(count + 1)
    assert f"{rule.multiple(count + 1)}" in explain(rule).overlap


def test_random_rounding_alone_is_no_crowd_and_its_small_privacy_is_said() -> None:
    found = explain("random rounding to base 3")
    assert found.guarantees[0].startswith("No crowd")
    assert "(0, 1/3)-differential privacy" in found.guarantees[1]
    assert (found.sampled, found.to_json()["crowd_blending"]) == ((), False)
    assert "with chance 1/3, 6" in found.overlap


@pytest.mark.parametrize("base", range(2, 12))
def test_one_person_changes_a_randomly_rounded_count_by_one_base_th_in_total_variation(base: int) -> None:
    def law(count: int) -> dict[int, Fraction]:
        low, rest = count // base * base, Fraction(count % base, base)
        return {low: 1 - rest, low + base: rest}

    for count in range(3 * base):
        one, more = law(count), law(count + 1)
        distance = sum((abs(one.get(at, Fraction(0)) - more.get(at, Fraction(0))) for at in {*one, *more}), Fraction(0))
        assert distance / 2 == Fraction(1, base)


def test_secondary_suppression_is_said_not_to_be_modelled() -> None:
    found = explain("cells below 5 are suppressed, with secondary suppression where necessary")
    assert found.guarantees[0].startswith("Of the minimum alone, in a table without totals")
    assert any("Secondary suppression is not modelled" in limit for limit in found.not_guaranteed)
    assert (found.sampled, found.to_json()["crowd_blending"]) == ((), False)


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        ("counts of 1 to 4 are suppressed", "the rule shows empty cells"),
        ("minimum cell size 10, rounded down to a multiple of 5", "the rule rounds down"),
        ("cells below 6 are suppressed and the rest randomly rounded to base 3", "the rule rounds at random"),
        ("cells below 5 are suppressed, with secondary suppression", "publishes no totals"),
        ("random rounding to base 3", "the rule withholds no count"),
    ],
)
def test_where_the_policy_means_something_else_it_says_so(sentence: str, said: str, tmp_path: Path) -> None:
    found = explain(sentence)
    assert any(said in each for each in found.differences)
    assert all(f"# differs from the rule: {each}\n" in found.policy for each in found.differences)
    policy(sentence, tmp_path)


def test_a_policy_that_says_the_same_says_no_more() -> None:
    found = explain("counts of 7 or fewer become 0, then round to 5")
    assert found.differences == ()
    assert found.policy.startswith("incrowd: 1\n")


@pytest.mark.parametrize("rounding", [Rounding.NEAREST, Rounding.UP, Rounding.DOWN])
def test_a_rule_with_hidden_zeros_ignores_or_blends_everyone(rounding: Rounding) -> None:
    """Whoever is in a cell below k can leave without a change; in any other, at least k share the cell."""
    rule = Rule(8, 5, zeros=Zeros.HIDDEN, rounding=rounding)
    published = [rule.multiple(count) if count >= rule.minimum else 0 for count in range(100)]
    for count in range(1, 100):
        assert count >= rule.minimum or published[count] == published[count - 1]


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
