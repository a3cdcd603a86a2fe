from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.errors import InvalidParameter
from incrowd.workflows.rules.grammar import read_rule
from incrowd.workflows.rules.rule import Rounding, Rule, Zeros, minimum_after_rounding, rounded_count
from incrowd.workflows.rules.suggestions import EXAMPLES
from tests.workflows.rules.wordings import WORDINGS, Wording

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


@pytest.mark.parametrize("wording", WORDINGS, ids=lambda wording: wording.sentence)
def test_common_wordings_are_understood(wording: Wording) -> None:
    found = read_rule(wording.sentence).rule
    assert found == Rule(
        wording.minimum, wording.base, None, wording.zeros, wording.rounding, secondary=wording.secondary
    )


def test_there_are_many_wordings_and_no_two_are_the_same() -> None:
    assert len({wording.sentence for wording in WORDINGS}) == len(WORDINGS) >= 60


@pytest.mark.parametrize("phrase", EXAMPLES)
def test_every_phrase_that_is_offered_is_understood(phrase: str) -> None:
    beside = ("round", "random", "with", "sampling", "zeros", "empty")
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
        ("minimal sell size 11", "'sell' is not understood here. The nearest phrase that is: 'minimum cell size 11'"),
        ("cells under 10 are supressed", "'cells below 10 are suppressed'"),
        ("fewer than 10", "'counts below 10 are suppressed' (counts of 10 or more"),
        ("10 or less", "'counts below 11 are suppressed' (counts of 11 or more"),
        ("suppress counts of 5", "or 'suppress counts of 5 or fewer' (counts of 6 or more"),
        ("k = 2,5", "'2,5' are not understood"),
        ("suppress counts below 1,5", "not understood"),
        ("counts below 10 % are suppressed", "not understood"),
        ("cells under 1.000 are suppressed", "is not understood"),
        ("k = 5,2,5 % sample", "not understood"),
        ("suppress if fewer than 5 or more than 100", "one minimum"),
        ("suppress if n >= 5", "publishes small counts"),
        ("do not suppress counts below 5", "publishes small counts"),
        ("publish n < 6", "publishes small counts"),
        ("cells below 5 are suppressed but totals are shown", "It says nothing of 'totals'"),
        ("counts of 5 to 9 are suppressed", "the smallest of them are not withheld"),
        ("counts of 1, 2 or 5 are suppressed", "gaps"),
        ("counts below 5 are reported as <6", "one minimum"),
        ("counts of 0 to 4 are suppressed, zeros are shown", "says both"),
        ("round to 5, zeros are shown", "cannot be told apart"),
        ("round to 5, then round to 10, minimum 20", "2 roundings"),
        ("no, counts below 5 are published", "stands alone"),
        ("suppress", "no minimum and no rounding"),
        ("k = 5 and k = 6", "one minimum"),
        ("suppress counts below 5, not excluding zeros", "stands alone"),
        ("n-size 10", "which side of it is meant"),
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


@pytest.mark.parametrize("opening", ["", "minimum ", "rounded ", "threshold "])
@pytest.mark.parametrize("word", ["frequency", "cell", "size", "of", "is", "people", "zero", "suppression", "1,"])
def test_a_sentence_of_one_word_over_and_over_is_refused_at_once(opening: str, word: str) -> None:
    """A pattern with two ways to read a word would try all of them: 2 to the 49 here, and never end."""
    with pytest.raises(InvalidParameter):
        read_rule((opening + f"{word} " * 250)[:490])


@settings(deadline=None)
@given(st.text(max_size=60))
def test_no_sentence_is_guessed_at_or_breaks_the_reader(sentence: str) -> None:
    try:
        found = read_rule(sentence).rule
    except InvalidParameter:
        return
    assert any(letter.isdigit() for letter in sentence)
    assert found.minimum >= 2 or found.base is not None


@pytest.mark.parametrize(
    ("sentence", "same"),
    [
        ("counts of 0 to 4 are vaporized", "counts of 0 to 4 are suppressed"),
        ("counts of 1 to 4 are vaporized", "counts of 1 to 4 are suppressed"),
        ("counts of 10 or less are vaporized", "cells below 11 are suppressed"),
        ("at least 7 wombats", "minimum cell size 7"),
    ],
)
def test_a_suggestion_speaks_of_the_same_counts_and_says_what_it_means(sentence: str, same: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        read_rule(sentence)
    said = str(refused.value)
    assert f"{same!r} ({read_rule(same).rule.words}" in said
    assert f"It says nothing of {sentence.rsplit(maxsplit=1)[-1]!r}" in said


def test_a_suggestion_is_never_about_another_number() -> None:
    for sentence in ("supress 17", "minimal sell 17", "counts of 17 or fewer go poof", "17 or more wombats"):
        with pytest.raises(InvalidParameter) as refused:
            read_rule(sentence)
        offered = str(refused.value).partition("The nearest phrase that is:")[2]
        assert not offered or "17" in offered or "18" in offered


@given(st.integers(1, 200), st.integers(2, 50), st.sampled_from(Rounding))
def test_rounding_first_is_suppression_by_the_least_count_that_can_show(
    minimum: int, base: int, rounding: Rounding
) -> None:
    """So it may rise or fall; `rounded_count` is the largest number that a count may become."""
    shown = [count for count in range(400) if rounded_count(count, base, rounding) >= minimum]
    assert minimum_after_rounding(minimum, base, rounding) == shown[0]


@pytest.mark.parametrize(
    ("sentence", "rule", "said"),
    [
        (
            "round to nearest 10 then suppress cells below 10",
            Rule(5, 10),
            "already shows as 10, so the minimum falls to 5",
        ),
        ("round to 5, then suppress counts below 11", Rule(13, 5), "counts of 11 to 12 are rounded below it"),
        ("round to 5, then suppress counts below 8", Rule(8, 5), "so the minimum stays"),
        ("round to 5 and suppress counts below 10", Rule(8, 5), "promises less"),
        ("round to 5 and suppress counts below 11", Rule(11, 5), "promises less"),
    ],
)
def test_a_rule_that_rounds_first_is_read_with_its_true_minimum_and_a_note(
    sentence: str, rule: Rule, said: str
) -> None:
    found = read_rule(sentence)
    assert found.rule == rule
    assert said in found.notes[0]


def test_zeros_that_show_after_rounding_are_rounded_ones() -> None:
    found = read_rule("round to 5, then suppress counts of 1 to 9")
    assert found.rule == Rule(3, 5, zeros=Zeros.HIDDEN)
    assert "3 or more" in found.notes[0]
