from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.errors import InvalidParameter
from incrowd.workflows.rules.rule import Rounding, Rule, SmallCountRule, Zeros


def published(rule: Rule, count: int) -> frozenset[int | str]:
    """Everything that a cell may show: the slow and obvious reading of a rule."""
    base = rule.base or 1
    low, high = count // base * base, -(-count // base) * base
    nearest = high if 2 * (count - low) >= base else low
    rounded = {
        Rounding.NEAREST: {nearest},
        Rounding.UP: {high},
        Rounding.DOWN: {low},
        Rounding.RANDOM: {low, high},
    }[rule.rounding]
    if rule.threshold == 1:
        return frozenset(rounded)
    if not rule.round_first:
        if count >= rule.threshold:
            return frozenset(rounded)
        return frozenset([0 if count == 0 and rule.zeros is Zeros.SHOWN else "hidden"])
    zeros = 0 if rule.zeros is Zeros.SHOWN else "hidden"
    return frozenset(number if number >= rule.threshold else zeros if number == 0 else "hidden" for number in rounded)


rules = st.builds(
    Rule,
    threshold=st.integers(2, 30),
    zeros=st.sampled_from(Zeros),
    base=st.integers(2, 20),
    rounding=st.sampled_from(Rounding),
    round_first=st.booleans(),
) | st.builds(Rule, base=st.integers(2, 20), rounding=st.sampled_from(Rounding))


@given(rule=rules)
def test_whoever_is_in_a_cell_below_k_can_leave_without_a_change(rule: Rule) -> None:
    if rule.protects:
        assert {published(rule, count) for count in range(rule.k)} == {published(rule, 0)}


@given(rule=rules)
def test_k_is_the_least_count_that_shows_and_no_smaller_one_could_be_claimed(rule: Rule) -> None:
    if not rule.zeros_apart:
        assert published(rule, rule.k) != published(rule, rule.k - 1)
    assert (rule.zeros_apart or rule.k == 1) == (published(rule, 1) != published(rule, 0))


@given(rule=rules)
def test_a_rule_publishes_from_the_least_published_count_on(rule: Rule) -> None:
    numbers = [{number for number in published(rule, count) if number not in ("hidden", 0)} for count in range(200)]
    assert (
        next(count for count, shows in enumerate(numbers) if shows) == rule.least_published
        or rule.multiple(rule.least_published) == 0
    )


@given(rule=rules)
def test_one_person_more_changes_the_telling_count(rule: Rule) -> None:
    count = rule.telling_count
    assert count >= rule.least_published
    assert rule.multiple(count) in published(rule, count)
    assert rule.multiple(count + 1) in published(rule, count + 1)
    assert rule.multiple(count + 1) != rule.multiple(count)


@pytest.mark.parametrize(
    ("threshold", "base", "rounding", "k"),
    [
        (10, 5, Rounding.NEAREST, 8),
        (11, 5, Rounding.NEAREST, 13),
        (10, 10, Rounding.NEAREST, 5),
        (6, 3, Rounding.RANDOM, 4),
        (11, 5, Rounding.DOWN, 15),
    ],
)
def test_rounding_first_moves_the_least_count_that_shows(threshold: int, base: int, rounding: Rounding, k: int) -> None:
    assert Rule(threshold, base=base, rounding=rounding, round_first=True).k == k
    assert Rule(threshold, base=base, rounding=rounding).k == threshold


def test_a_rule_without_a_threshold_hides_what_is_rounded_to_0() -> None:
    assert (Rule(base=5).k, Rule(base=5).protects) == (3, True)
    assert (Rule(base=5, rounding=Rounding.UP).k, Rule(base=5, rounding=Rounding.UP).protects) == (1, False)


@pytest.mark.parametrize("rule", [Rule(5, totals=True), Rule(5, percentages=True), Rule(5, secondary=True)])
def test_what_counts_hidden_cells_too_breaks_the_crowd(rule: Rule) -> None:
    assert Rule(5).protects
    assert not rule.protects


def test_a_second_table_breaks_the_crowd() -> None:
    assert not Rule(5, tables=2).protects


def test_zeros_that_show_break_the_crowd() -> None:
    assert not Rule(5, zeros=Zeros.SHOWN).protects
    assert not Rule(5, small_counts=SmallCountRule.LABEL, zeros=Zeros.SHOWN).protects


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"threshold": 1}, "from 2 to a million"),
        ({"threshold": 10**6 + 1}, "from 2 to a million"),
        ({"base": 1}, "rounded to a whole number"),
        ({"threshold": 5, "rounding": Rounding.UP}, "not to what"),
        ({"threshold": 5, "round_first": True}, "not to what"),
        ({"threshold": 5, "small_counts": SmallCountRule.ZERO, "zeros": Zeros.SHOWN}, "like empty cells"),
        ({"base": 5, "zeros": Zeros.SHOWN}, "like empty cells"),
        ({"base": 5, "secondary": True}, "but not which"),
        ({"threshold": 5, "tables": 0}, "number of tables"),
        ({"threshold": 5, "rate": 1}, "sampling rate"),
    ],
)
def test_a_rule_that_contradicts_itself_is_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        Rule(**fields)  # type: ignore[arg-type]


def test_a_rule_says_all_that_it_was_told() -> None:
    rule = Rule(5, SmallCountRule.LABEL, Zeros.SHOWN, 5, Rounding.RANDOM, totals=True, secondary=True, tables=3)
    for words in ("below 5", "a label", "shown as 0", "at random", "of 5", "totals", "further cells", "3 tables"):
        assert words in rule.words
