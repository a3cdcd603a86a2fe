from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.errors import InvalidParameter
from incrowd.workflows.rules.grammar import Rule, Zeros, minimum_after_rounding, read_rule
from incrowd.workflows.rules.phrases import EXAMPLES

TENTH = Fraction(1, 10)


@pytest.mark.parametrize(
    ("sentence", "minimum", "base", "rate"),
    [
        ("counts of 7 or fewer become 0, then round to 5", 8, 5, None),
        ("minimum cell 11", 11, None, None),
        ("minimum cell size 11", 11, None, None),
        ("k = 5 with 10 % sample", 5, None, TENTH),
        ("cells below 10 are suppressed", 10, None, None),
        ("suppress counts < 5", 5, None, None),
        ("suppress counts <= 5", 6, None, None),
        ("Counts ≤ 7 become 0 and round to base 3", 8, 3, None),
        ("threshold of 20", 20, None, None),
        ("at least 30 contributors", 30, None, None),
        ("more than 30 contributors", 31, None, None),
        ("publish counts of at least 10, rounded to 5", 10, 5, None),
        ("suppress cells with fewer than five people", 5, None, None),
        ("From a 10% sample, cells below 5 are suppressed.", 5, None, TENTH),
        ("sampling rate 0.1; minimum frequency of 3; round to nearest 10", 3, 10, TENTH),
        ("1,000 or more people", 1000, None, None),
        ("primary suppression n<6", 6, None, None),
        ("n≤4 suppressed", 5, None, None),
        ("publish only if n>=10", 10, None, None),
        ("n > 5", 6, None, None),
        ("suppress if fewer than 5", 5, None, None),
        ("counts less than or equal to 5 are suppressed", 6, None, None),
        ("k=10,5 % sample", 10, None, Fraction(1, 20)),
        ("1 in 20 sample, min 3", 3, None, Fraction(1, 20)),
    ],
)
def test_rules_are_read_as_agencies_write_them(
    sentence: str, minimum: int, base: int | None, rate: Fraction | None
) -> None:
    found = read_rule(sentence).rule
    assert (found.minimum, found.base, found.rate) == (minimum, base, rate)


@pytest.mark.parametrize("phrase", EXAMPLES)
def test_every_phrase_that_is_offered_is_understood(phrase: str) -> None:
    beside = ("round", "with", "sampling", "zeros", "empty")
    sentence = f"minimum cell size 10, {phrase}" if phrase.startswith(beside) else phrase
    assert read_rule(sentence).rule.minimum >= 4


@pytest.mark.parametrize(
    ("sentence", "zeros"),
    [
        ("counts below 10 become 0", Zeros.HIDDEN),
        ("cells below 10 are suppressed", Zeros.UNSAID),
        ("counts of 1 to 4 are suppressed", Zeros.SHOWN),
        ("counts of 1 to 4 become 0", Zeros.HIDDEN),
        ("minimum cell size 10; zeros are shown", Zeros.SHOWN),
        ("minimum cell size 10, empty cells are hidden", Zeros.HIDDEN),
    ],
)
def test_whether_empty_cells_show_is_read_too(sentence: str, zeros: Zeros) -> None:
    assert read_rule(sentence).rule.zeros is zeros


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        ("minimal sell size 11", "'minimum cell size 11'"),
        ("cells under 10 are supressed", "'cells below 10 are suppressed'"),
        ("fewer than 10", "'suppress counts below 5'"),
        ("10 or less", "'suppress counts of 7 or fewer'"),
        ("k = 2,5", "'k = 2,5' is not understood"),
        ("suppress counts below 1,5", "is not understood"),
        ("cells under 1.000 are suppressed", "is not understood"),
        ("k = 5,2,5 % sample", "'k = 5,2' is not understood"),
        ("suppress if fewer than 5 or more than 100", "is not understood"),
        ("suppress if n >= 5", "is not understood"),
        ("publish n < 6", "is not understood"),
        ("round to 5", "0 minima"),
        ("k = 5 and k = 6", "2 minima"),
        ("p% rule", "magnitudes"),
        ("(n,k) dominance rule with n = 2", "magnitudes"),
        ("minimum cell size 10, then a 10% sample", "in front of the counting"),
        ("k = 1", "at least 2"),
        ("k = 5 with 0 in 10 sample", "strictly between 0 and 1"),
        ("", "one sentence"),
        ("minimum cell size 5 " * 100, "one sentence"),
    ],
)
def test_what_is_not_understood_is_refused_with_the_way_out(sentence: str, said: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        read_rule(sentence)
    assert said in str(refused.value)


@settings(deadline=None)
@given(st.text(max_size=60))
def test_no_sentence_is_guessed_at_or_breaks_the_reader(sentence: str) -> None:
    try:
        found = read_rule(sentence).rule
    except InvalidParameter:
        return
    assert any(letter.isdigit() for letter in sentence)
    assert found.minimum >= 2


@given(st.integers(2, 200), st.integers(2, 50))
def test_rounding_first_lowers_the_minimum_to_the_least_count_that_shows(minimum: int, base: int) -> None:
    shown = [count for count in range(400) if (2 * count + base) // (2 * base) * base >= minimum]
    assert minimum_after_rounding(minimum, base) == shown[0]


def test_a_rule_that_rounds_first_is_read_with_its_true_minimum_and_a_note() -> None:
    found = read_rule("round to nearest 10 then suppress cells below 10")
    assert found.rule == Rule(5, 10)
    assert "a count of 5 already shows as 10" in found.notes[0]
