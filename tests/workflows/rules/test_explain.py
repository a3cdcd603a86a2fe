from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from incrowd.accounting.suppression import tight_delta
from incrowd.core.loss import Crowd, Sampled, Syntactic
from incrowd.errors import InvalidParameter
from incrowd.workflows.policy.policy import Policy, load_policy
from incrowd.workflows.rules.explain import explain
from incrowd.workflows.rules.rule import Rounding, Rule, SmallCountRule, Zeros
from tests.plans import steps_json

TENTH = Fraction(1, 10)
ZEROED = Rule(8, SmallCountRule.ZERO, base=5)
RANDOM = Rule(base=3, rounding=Rounding.RANDOM)


def policy(rule: Rule, folder: Path) -> Policy:
    file = folder / "policy.yaml"
    file.write_text(explain(rule).policy, encoding="utf-8")
    return load_policy(file)


def test_the_answer_begins_with_yes_or_no() -> None:
    assert explain(ZEROED).answer.startswith("Yes: ")
    assert explain(Rule(8, totals=True)).answer.startswith("No: ")


def test_a_rule_is_crowd_blending_with_its_least_published_count() -> None:
    explanation = explain(ZEROED)
    assert explanation.guarantees[0].startswith("One such table is (8, 0)-crowd-blending")
    assert "post-processing" in explanation.guarantees[1]
    assert explanation.reasons == ()
    assert any("An epsilon" in limit for limit in explanation.not_guaranteed)


def test_rounding_first_says_where_k_comes_from() -> None:
    assert "8 is the least count that can become 10" in explain(Rule(10, base=5, round_first=True)).guarantees[1]


def test_a_published_total_gives_a_single_hidden_cell_away() -> None:
    (reason,) = explain(Rule(5, totals=True)).reasons
    assert "5 people live in v and one in w: the total shows 6, v shows 5" in reason


def test_a_rounded_total_gives_a_hidden_cell_away_where_it_crosses_a_half() -> None:
    (reason,) = explain(Rule(5, base=5, totals=True)).reasons
    assert "7 people live in v and one in w: the total shows 10, v shows 5" in reason


@pytest.mark.parametrize(
    ("rule", "names"),
    [
        (Rule(5, zeros=Zeros.SHOWN), ["Zeros"]),
        (Rule(5, zeros=Zeros.SHOWN, totals=True), ["Zeros", "Totals"]),
        (Rule(5, percentages=True), ["Percentages"]),
        (Rule(5, totals=True, secondary=True), ["Totals", "Secondary suppression"]),
        (Rule(5, tables=2), ["Further tables"]),
        (RANDOM, ["Rounding"]),
    ],
)
def test_a_no_names_every_reason(rule: Rule, names: list[str]) -> None:
    explanation = explain(rule)
    assert [reason.partition(":")[0] for reason in explanation.reasons] == names
    assert explanation.sampled == ()
    assert explanation.to_json()["protects"] is False


def test_what_would_hold_without_totals_is_said_as_such() -> None:
    (guarantee,) = explain(Rule(5, totals=True, secondary=True)).guarantees
    assert guarantee.startswith("Without totals and secondary suppression, one such table is (5, 0)-crowd-blending")
    assert explain(Rule(5, totals=True, zeros=Zeros.SHOWN)).guarantees == ()


def test_the_overlap_warning_counts_with_the_rule_s_own_numbers() -> None:
    text = explain(Rule(11)).overlap
    assert "11 people live in v and one in w: a table by v and w together shows 12, a table by v shows 11" in text
    assert "incrowd coarsen" in text
    assert "12 people live in v and one in w: a table by v and w together shows 15" in explain(ZEROED).overlap


def test_the_overlap_example_shows_no_number_that_the_rule_hides() -> None:
    text = explain(Rule(10, base=5, round_first=True, zeros=Zeros.SHOWN)).overlap
    assert "12 people live in v and one in w: a table by v and w together shows 15, a table by v shows 10" in text


def test_random_rounding_alone_has_a_failure_probability_that_is_too_large() -> None:
    explanation = explain(RANDOM)
    assert "(0, 1/3)-differential privacy" in explanation.guarantees[0]
    assert "shows 6 with chance 1/3" in explanation.overlap


@pytest.mark.parametrize("base", range(2, 12))
def test_one_person_changes_a_randomly_rounded_count_by_one_base_th_in_total_variation(base: int) -> None:
    def law(count: int) -> dict[int, Fraction]:
        low, rest = count // base * base, Fraction(count % base, base)
        return {low: 1 - rest, low + base: rest}

    for count in range(3 * base):
        one, more = law(count), law(count + 1)
        distance = sum((abs(one.get(at, Fraction(0)) - more.get(at, Fraction(0))) for at in {*one, *more}), Fraction(0))
        assert distance / 2 == Fraction(1, base)


@pytest.mark.parametrize(
    ("rule", "difference"),
    [
        (Rule(5, zeros=Zeros.SHOWN), "empty cells and hidden ones alike"),
        (Rule(10, base=5, rounding=Rounding.DOWN), "rounds to the nearest multiple"),
        (Rule(5, totals=True), "hides further cells"),
        (Rule(5, totals=True, base=5), "does not round"),
        (Rule(5, totals=True, rate=TENTH), "draws no sample"),
        (Rule(5, percentages=True), "no percentages"),
        (Rule(5, secondary=True), "publishes all totals"),
        (Rule(base=5, totals=True), "all totals add up"),
        (Rule(5, tables=2), "one table"),
        (RANDOM, "counts below 3 as 0"),
    ],
)
def test_where_the_policy_means_something_else_it_says_so_and_loads(
    rule: Rule, difference: str, tmp_path: Path
) -> None:
    explanation = explain(rule)
    assert any(difference in text for text in explanation.differences)
    assert all(f"#   {text}\n" in explanation.policy for text in explanation.differences)
    policy(rule, tmp_path)


def test_a_policy_that_means_the_same_says_no_more() -> None:
    assert explain(ZEROED).differences == ()
    assert explain(ZEROED).policy.startswith("incrowd: 1\n")


def test_the_policy_of_a_rule_loads_and_guarantees_what_was_explained(tmp_path: Path) -> None:
    loaded = policy(ZEROED, tmp_path)
    assert loaded.method.plan(loaded.schema).guarantee.loss == Crowd(8)
    assert steps_json(loaded.method, loaded.schema)[-1]["round"] == 5
    assert loaded.budget is not None
    assert loaded.budget.unbounded


@pytest.mark.parametrize("rule", [Rule(5, totals=True), Rule(5, secondary=True), Rule(base=5, totals=True)])
def test_the_policy_of_a_rule_with_totals_is_a_protected_table(rule: Rule, tmp_path: Path) -> None:
    loaded = policy(rule, tmp_path)
    assert loaded.method.name == "protected-table"
    assert isinstance(loaded.method.plan(loaded.schema).guarantee.loss, Syntactic)


@pytest.mark.parametrize("rule", [Rule(5, rate=TENTH), Rule(20, base=10, rate=TENTH), Rule(2, rate=Fraction(9, 10))])
def test_the_policy_of_a_rule_with_a_sample_has_a_delta_that_some_epsilon_reaches(rule: Rule, tmp_path: Path) -> None:
    loaded = policy(rule, tmp_path)
    assert rule.rate is not None
    assert loaded.method.plan(loaded.schema).guarantee.loss == Sampled(rule.rate, Crowd(rule.k))


def test_what_a_sample_would_add_lies_on_the_tight_curve() -> None:
    rows = {row.rate: row for row in explain(Rule(20), "1e-6").sampled}
    tenth = rows[TENTH]
    assert tenth.epsilon == pytest.approx(0.18299, rel=1e-4)
    assert tight_delta.delta(20, "0.1", tenth.epsilon or 0) <= 1e-6
    assert tenth.delta_at_one == tight_delta.delta(20, "0.1", 1)
    assert rows[Fraction(1, 2)].epsilon is not None
    assert explain(Rule(5)).sampled[-1].epsilon is None  # (1/2)^5 is above 1e-6


def test_a_rule_with_a_sample_states_its_epsilon_rounded_up() -> None:
    text = explain(Rule(20, rate=TENTH)).guarantees[1]
    assert "(0.182989, 1e-06)-differentially private" in text or "(0.18299, 1e-06)" in text
    assert "no epsilon" in explain(Rule(5, rate=TENTH)).guarantees[1]


def test_a_sample_does_not_mend_a_rule_with_totals() -> None:
    explanation = explain(Rule(20, rate=TENTH, totals=True))
    assert not any("differentially" in text for text in explanation.guarantees)
    assert any("An epsilon" in limit for limit in explanation.not_guaranteed)


@pytest.mark.parametrize("delta", ["0", "1", "-1"])
def test_a_delta_that_is_no_probability_is_refused(delta: str) -> None:
    with pytest.raises(InvalidParameter, match="delta"):
        explain(Rule(5), delta)
