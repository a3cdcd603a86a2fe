"""The fold of events as of two times is what a slow reading of them one by one gives."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.errors import InvalidParameter, LedgerCorrupted
from incrowd.governance.consent import state
from incrowd.governance.consent.event import ConsentEvent, Decided, covers, depth_of, moment
from incrowd.governance.consent.state import AsOf, Recorded, as_rows
from incrowd.governance.consent.state import consenting as consenting_rows

PURPOSES = ("a", "a/b", "a/b/c", "a/x", "d")
DAYS = [moment(f"2026-01-{day:02}") for day in range(1, 9)]
ANN, BOB = "a" * 32, "b" * 32

days = st.sampled_from(DAYS)


def consenting(found: Iterable[Recorded], purpose: str, as_of: AsOf) -> frozenset[str]:
    return consenting_rows(as_rows(found), purpose, as_of)


@st.composite
def events(draw: st.DrawFn) -> Recorded:
    decided = draw(st.sampled_from(list(Decided)))
    first, last = sorted(draw(st.lists(days, min_size=2, max_size=2, unique=True)))
    ends = last if decided in (Decided.GIVE, Decided.RESTRICT) and draw(st.booleans()) else None
    subject, purpose = draw(st.sampled_from((ANN, BOB))), draw(st.sampled_from(PURPOSES))
    return draw(days), ConsentEvent(subject, decided, purpose, draw(days), first, ends)


def oracle(found: list[Recorded], purpose: str, as_of: AsOf, subject: str) -> bool:
    """Read decisions in the order in which they were taken, and remember which refusals stand."""
    known = [
        event
        for recorded, event in found
        if event.subject == subject
        and covers(event.purpose, purpose)
        and recorded <= as_of.recorded
        and event.valid_from <= as_of.valid
        and not (event.valid_to is not None and event.valid_to <= as_of.valid)
    ]
    standing: list[ConsentEvent] = []
    anything = False
    for event in sorted(known, key=lambda each: (each.at, not each.gives)):
        if event.gives:
            anything = True
            standing = [each for each in standing if depth_of(each.purpose) > depth_of(event.purpose)]
        else:
            standing.append(event)
    return anything and not standing


@given(st.lists(events(), max_size=12), st.sampled_from(PURPOSES), days, days)
def test_the_fold_is_what_reading_events_one_by_one_gives(
    found: list[Recorded], purpose: str, valid: str, recorded: str
) -> None:
    as_of = AsOf(valid, recorded)
    expected = {subject for subject in (ANN, BOB) if oracle(found, purpose, as_of, subject)}
    assert consenting(found, purpose, as_of) == expected
    assert consenting(reversed(found), purpose, as_of) == expected


@given(st.lists(events(), max_size=8), st.lists(events(), max_size=8), days, days)
def test_what_is_recorded_later_never_changes_what_was_known(
    before: list[Recorded], after: list[Recorded], valid: str, recorded: str
) -> None:
    as_of = AsOf(valid, recorded)
    known = [each for each in before if each[0] <= recorded]
    later = [(DAYS[-1] + "later", event) for _, event in after]
    assert consenting([*known, *later], "a/b", as_of) == consenting(known, "a/b", as_of)


@given(st.lists(events(), max_size=12), days)
def test_somebody_who_gave_nothing_never_consents(found: list[Recorded], valid: str) -> None:
    none_given = [each for each in found if not each[1].gives]
    assert consenting(none_given, "a/b", AsOf(valid, DAYS[-1])) == frozenset()


def decided(*told: tuple[Decided, str, str]) -> list[Recorded]:
    return [(at, ConsentEvent(ANN, what, purpose, at)) for what, purpose, at in told]


@pytest.mark.parametrize(
    ("told", "consents"),
    [
        ([(Decided.GIVE, "a", DAYS[0])], True),
        ([(Decided.GIVE, "a/b", DAYS[0])], True),
        ([(Decided.GIVE, "a/b/c", DAYS[0])], False),  # a consent to a narrower purpose
        ([(Decided.GIVE, "d", DAYS[0])], False),
        ([(Decided.REFUSE, "a/b", DAYS[0]), (Decided.GIVE, "a", DAYS[1])], False),  # the refusal was more specific
        ([(Decided.WITHDRAW, "a", DAYS[0]), (Decided.GIVE, "a/b", DAYS[1])], True),
        ([(Decided.GIVE, "a/b", DAYS[0]), (Decided.WITHDRAW, "a", DAYS[1])], False),
        (
            [(Decided.WITHDRAW, "a", DAYS[1]), (Decided.GIVE, "a/b", DAYS[1])],
            False,
        ),  # at one moment, the refusal counts
        ([(Decided.GIVE, "a", DAYS[0]), (Decided.EXPIRE, "a", DAYS[1])], False),
        ([(Decided.GIVE, "a", DAYS[0]), (Decided.RESTRICT, "a", DAYS[1])], False),
    ],
)
def test_decisions_about_a_tree_of_purposes(told: list[tuple[Decided, str, str]], consents: bool) -> None:
    assert (ANN in consenting(decided(*told), "a/b", AsOf(DAYS[-1], DAYS[-1]))) is consents


def test_an_old_consent_that_is_recorded_late_does_not_undo_a_withdrawal() -> None:
    left = (DAYS[3], ConsentEvent(ANN, Decided.WITHDRAW, "a", DAYS[3]))
    late = (DAYS[5], ConsentEvent(ANN, Decided.GIVE, "a", DAYS[1]))
    assert consenting([left, late], "a", AsOf(DAYS[6], DAYS[6])) == frozenset()


def test_a_consent_ends_by_itself_and_a_withdrawal_does_not() -> None:
    ending = [(DAYS[0], ConsentEvent(ANN, Decided.GIVE, "a", DAYS[0], DAYS[0], DAYS[4]))]
    assert [ANN in consenting(ending, "a", AsOf(day, DAYS[-1])) for day in DAYS[2:6]] == [True, True, False, False]
    with pytest.raises(InvalidParameter, match="has no end"):
        ConsentEvent(ANN, Decided.WITHDRAW, "a", DAYS[0], DAYS[0], DAYS[4])
    with pytest.raises(InvalidParameter, match="comes after"):
        ConsentEvent(ANN, Decided.GIVE, "a", DAYS[0], DAYS[4], DAYS[4])


def test_many_people_and_pieces_are_folded_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "_AT_ONCE", 7)
    chance = random.Random(19)
    people = [f"{number:032x}" for number in range(150)]
    found = [
        (
            chance.choice(DAYS),
            ConsentEvent(
                chance.choice(people), chance.choice(list(Decided)), chance.choice(PURPOSES), chance.choice(DAYS)
            ),
        )
        for _ in range(900)
    ]
    as_of = AsOf(DAYS[5], DAYS[6])
    expected = {subject for subject in people if oracle(found, "a/b", as_of, subject)}
    assert 0 < len(expected) < len(people)
    assert consenting(found, "a/b", as_of) == expected


def test_a_moment_that_is_none_lets_nobody_in() -> None:
    row = [ANN, "give", "a", "May", DAYS[1], None, "", ""]
    with pytest.raises(LedgerCorrupted, match="a moment that is none"):
        consenting_rows([(DAYS[1], [row])], "a", AsOf(DAYS[2], DAYS[2]))


def test_a_decision_of_an_unknown_kind_counts_against() -> None:
    row = [ANN, "ponder", "a", DAYS[1], DAYS[1], None, "", ""]
    given = ConsentEvent(ANN, Decided.GIVE, "a", DAYS[0]).to_row()
    assert consenting_rows([(DAYS[1], [given, row])], "a", AsOf(DAYS[2], DAYS[2])) == frozenset()
