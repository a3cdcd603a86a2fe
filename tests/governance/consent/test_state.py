"""The fold of events as of two times is what a slow reading of them one by one gives."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace

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
    """Read the definition literally, decision by decision, as of the two times."""
    begun = [
        event
        for recorded, event in found
        if covers(event.purpose, purpose) and recorded <= as_of.recorded and event.valid_from <= as_of.valid
    ]
    over = [event for event in begun if event.valid_to is not None and event.valid_to <= as_of.valid]
    own = {event.alike for event in begun if event.subject == subject and event.alike}
    against = [
        event
        for event in begun
        if not event.gives and event not in over and (event.subject == subject or event.alike in own)
    ]
    ended = [event for event in over if event.gives and event.subject == subject]
    in_force = [
        event
        for event in begun
        if event.gives
        and event.subject == subject
        and event not in over
        and not any(event.at <= other.at for other in ended)
    ]
    return bool(in_force) and all(
        any(given.at > left.at and depth_of(given.purpose) >= depth_of(left.purpose) for given in in_force)
        for left in against
    )


def newest_decides(found: list[Recorded], as_of: AsOf, subject: str) -> bool:
    """Read a person's decisions about one purpose from the newest back: the first that has something to say decides."""
    begun = [
        event
        for recorded, event in found
        if event.subject == subject and recorded <= as_of.recorded and event.valid_from <= as_of.valid
    ]
    for event in sorted(begun, key=lambda each: (each.at, not each.gives, each.valid_to is not None), reverse=True):
        over = event.valid_to is not None and event.valid_to <= as_of.valid
        if event.gives:
            same = [each for each in begun if each.gives and each.at == event.at]
            return not any(each.valid_to is not None and each.valid_to <= as_of.valid for each in same)
        if not over:
            return False
    return False


def stream(chance: random.Random, people: list[str], purposes: tuple[str, ...], most: int = 5) -> list[Recorded]:
    """Return some decisions of each person, on few days, so that moments, ends and beginnings meet."""
    found = []
    for number, subject in enumerate(people):
        alike = f"{1 + number // 2:032x}"[::-1] if number % 5 else ""  # some have the same, and some are of old events
        for _ in range(chance.randint(0, most)):
            decided = chance.choice([Decided.GIVE, Decided.GIVE, *Decided])
            first, last = sorted(chance.sample(DAYS, 2))
            ends = last if decided in (Decided.GIVE, Decided.RESTRICT) and chance.random() < 0.5 else None
            begins = first if chance.random() < 0.5 else DAYS[0]
            event = ConsentEvent(subject, decided, chance.choice(purposes), chance.choice(DAYS), begins, ends)
            found.append((chance.choice(DAYS), replace(event, alike=alike)))
    chance.shuffle(found)
    return found


@pytest.mark.parametrize("purpose", ["a", "a/b", "a/b/c"])
def test_thousands_of_streams_are_folded_as_the_definition_says(purpose: str) -> None:
    chance = random.Random(28)
    people = [f"{number:032x}" for number in range(1, 1201)]
    found = stream(chance, people, PURPOSES)
    by_pair: dict[int, list[Recorded]] = {}
    for each in found:
        by_pair.setdefault((int(each[1].subject, 16) - 1) // 2, []).append(each)
    for valid, recorded in ((DAYS[2], DAYS[7]), (DAYS[5], DAYS[4]), (DAYS[7], DAYS[7])):
        as_of = AsOf(valid, recorded)
        expected = {
            subject
            for number, subject in enumerate(people)
            if oracle(by_pair.get(number // 2, []), purpose, as_of, subject)
        }
        assert 0 < len(expected) < len(people)
        assert consenting(found, purpose, as_of) == expected


def test_about_one_purpose_the_newest_decision_replaces_all_before_it() -> None:
    chance = random.Random(2028)
    people = [f"{number:032x}" for number in range(1, 1501)]
    found = [(at, replace(event, alike="")) for at, event in stream(chance, people, ("a",), 4)]
    for valid in (DAYS[3], DAYS[7]):
        as_of = AsOf(valid, DAYS[6])
        expected = {
            subject
            for subject in people
            if newest_decides([each for each in found if each[1].subject == subject], as_of, subject)
        }
        assert 0 < len(expected) < len(people)
        assert consenting(found, "a", as_of) == expected


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


def in_force(*told: ConsentEvent, purpose: str = "a") -> list[bool]:
    """Return for each day whether Ann consents, by what is recorded until the last one."""
    found = [(DAYS[0], event) for event in told]
    return [ANN in consenting(found, purpose, AsOf(day, DAYS[-1])) for day in DAYS]


def give(at: int, begins: int | None = None, ends: int | None = None, purpose: str = "a") -> ConsentEvent:
    times = (DAYS[at if begins is None else begins], None if ends is None else DAYS[ends])
    return ConsentEvent(ANN, Decided.GIVE, purpose, DAYS[at], *times)


def days_in_force(first: int, end: int) -> list[bool]:
    return [first <= day < end for day in range(len(DAYS))]


def test_a_later_consent_with_an_end_replaces_an_earlier_one_without() -> None:
    assert in_force(give(0), give(2, ends=5)) == days_in_force(0, 5)
    assert in_force(give(2, ends=5), give(0)) == days_in_force(0, 5), "whatever arrives first"
    assert in_force(give(0), give(2, begins=4, ends=5)) == days_in_force(0, 5), "it speaks of nothing before it begins"
    assert in_force(give(0, ends=3), give(2)) == days_in_force(0, 8), "a later one without an end goes on"
    assert in_force(give(1), give(1, ends=4)) == days_in_force(1, 4), "of two at one moment the one that ends"
    assert in_force(give(0), give(2, ends=5), give(6)) == [*days_in_force(0, 5)[:6], True, True], "and a new one counts"


def test_a_consent_with_an_end_replaces_what_was_said_of_wider_and_narrower_purposes() -> None:
    wide, narrow = give(0), give(2, ends=5, purpose="a/b")
    assert in_force(wide, narrow, purpose="a/b") == days_in_force(0, 5)
    assert in_force(wide, narrow) == days_in_force(0, 8), "of the wide purpose the narrow one says nothing"
    wide, narrow = give(2, ends=5), give(0, purpose="a/b")
    assert in_force(wide, narrow, purpose="a/b") == days_in_force(0, 5)


def test_a_restriction_that_ends_leaves_the_consent_before_it() -> None:
    paused = ConsentEvent(ANN, Decided.RESTRICT, "a", DAYS[2], DAYS[2], DAYS[5])
    assert in_force(give(0), paused) == [True, True, False, False, False, True, True, True]


def test_a_correction_is_a_later_decision() -> None:
    left = ConsentEvent(ANN, Decided.WITHDRAW, "a", DAYS[3])
    assert in_force(give(0), left, give(2)) == days_in_force(0, 3), "taken before, recorded after: it undoes nothing"
    assert in_force(give(0), left, give(3)) == days_in_force(0, 3), "at the same moment the one against counts"
    assert in_force(give(0), left, give(4, begins=1)) == days_in_force(0, 3)[:1] + [True] * 7, (
        "it speaks of days before"
    )


def test_a_withdrawal_counts_for_ids_written_alike_and_a_consent_for_one() -> None:
    alike = "c" * 32
    ann, bob = (replace(give(0), subject=each, alike=alike) for each in (ANN, BOB))
    left = ConsentEvent("d" * 32, Decided.WITHDRAW, "a", DAYS[2], alike=alike)
    again = replace(give(4), subject=BOB, alike=alike)
    found = [(DAYS[0], each) for each in (ann, bob, left, again)]
    assert consenting(found, "a", AsOf(DAYS[1], DAYS[7])) == {ANN, BOB}
    assert consenting(found, "a", AsOf(DAYS[3], DAYS[7])) == frozenset()
    assert consenting(found, "a", AsOf(DAYS[5], DAYS[7])) == {BOB}


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
