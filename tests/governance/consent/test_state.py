"""The fold of events as of two times is what a slow reading of them one by one gives.

`python -m tests.governance.consent.test_state --moments 100000` compares that many random people and moments.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.errors import InvalidParameter, LedgerCorrupted
from incrowd.governance.consent import state
from incrowd.governance.consent.columns import EventColumns
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
    at, corrects = draw(days), draw(days) if decided is Decided.VOID or draw(st.booleans()) else None
    age = draw(days)
    guardian = {"guardian": "mother", "of_age": age} if age > max(at, first) and draw(st.booleans()) else {}
    return draw(days), ConsentEvent(subject, decided, purpose, at, first, ends, corrects=corrects, **guardian)


def uncorrected(found: list[Recorded], as_of: AsOf) -> list[ConsentEvent]:
    """Return the events that count by what was recorded: none that a later correction names, none that voids."""
    events = [(recorded, event) for recorded, event in found if recorded <= as_of.recorded]
    corrections = [(recorded, event) for recorded, event in events if event.corrects is not None]

    def corrected(recorded: str, event: ConsentEvent) -> bool:
        return any(
            (other.subject, other.purpose, other.corrects) == (event.subject, event.purpose, event.at)
            and (later > recorded or (later == recorded and event.corrects is None))
            for later, other in corrections
        )

    return [event for at, event in events if event.decided is not Decided.VOID and not corrected(at, event)]


def end_of(event: ConsentEvent) -> str | None:
    """Return when an event ends: a guardian's consent no later than the day on which the person comes of age."""
    if event.decided is Decided.GIVE and event.of_age is not None:
        return event.of_age if event.valid_to is None or event.of_age < event.valid_to else event.valid_to
    return event.valid_to


def oracle(found: list[Recorded], purpose: str, as_of: AsOf, subject: str) -> bool:
    """Read the definition literally, decision by decision, as of the two times."""
    begun = [
        event
        for event in uncorrected(found, as_of)
        if covers(event.purpose, purpose) and event.valid_from <= as_of.valid
    ]
    over = [event for event in begun if (end := end_of(event)) is not None and end <= as_of.valid]
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
        event for event in uncorrected(found, as_of) if event.subject == subject and event.valid_from <= as_of.valid
    ]
    for event in sorted(begun, key=lambda one: (one.at, not one.gives, end_of(one) is not None), reverse=True):
        end = end_of(event)
        over = end is not None and end <= as_of.valid
        if event.gives:
            same = [end_of(one) for one in begun if one.gives and one.at == event.at]
            return not any(end is not None and end <= as_of.valid for end in same)
        if not over:
            return False
    return False


def random_event(chance: random.Random, subject: str, purposes: tuple[str, ...]) -> ConsentEvent:
    """Return a decision: one in eight corrects another moment, and one in six consents is a guardian's."""
    decided = chance.choice([Decided.GIVE, Decided.GIVE, Decided.GIVE, *Decided])
    first, last = sorted(chance.sample(DAYS, 2))
    ends = last if decided in (Decided.GIVE, Decided.RESTRICT) and chance.random() < 0.5 else None
    begins = first if chance.random() < 0.5 else DAYS[0]
    at, age = chance.choice(DAYS), chance.choice(DAYS)
    guardian = {"guardian": "aunt", "of_age": age} if age > max(at, begins) and chance.random() < 0.4 else {}
    corrects = chance.choice(DAYS) if decided is Decided.VOID or chance.random() < 0.08 else None
    return ConsentEvent(subject, decided, chance.choice(purposes), at, begins, ends, corrects=corrects, **guardian)


def stream(chance: random.Random, people: list[str], purposes: tuple[str, ...], most: int = 5) -> list[Recorded]:
    """Return some decisions of each person, on few days, so that moments, ends and beginnings meet."""
    found = []
    for number, subject in enumerate(people):
        alike = f"{1 + number // 2:032x}"[::-1] if number % 5 else ""  # some have the same, and some are of old events
        found += [
            (chance.choice(DAYS), replace(random_event(chance, subject, purposes), alike=alike))
            for _ in range(chance.randint(0, most))
        ]
    chance.shuffle(found)
    return found


MOMENTS = ((DAYS[2], DAYS[7]), (DAYS[5], DAYS[4]), (DAYS[7], DAYS[7]))


def compare(chance: random.Random, number: int, purpose: str) -> int:
    """Compare the fold with the definition for that many people at three moments; return how many consented."""
    people = [f"{number:032x}" for number in range(1, number + 1)]
    found = stream(chance, people, PURPOSES)
    by_pair: dict[int, list[Recorded]] = {}
    for decision in found:
        by_pair.setdefault((int(decision[1].subject, 16) - 1) // 2, []).append(decision)
    days = {at: [event.to_row() for on, event in found if on == at] for at in DAYS}
    stored = [(at, EventColumns.of_rows(rows)) for at, rows in days.items()]
    consents = 0
    for valid, recorded in MOMENTS:
        as_of = AsOf(valid, recorded)
        expected = {
            subject
            for place, subject in enumerate(people)
            if oracle(by_pair.get(place // 2, []), purpose, as_of, subject)
        }
        assert consenting(found, purpose, as_of) == consenting_rows(stored, purpose, as_of) == expected
        consents += len(expected)
    return consents


@pytest.mark.parametrize("purpose", ["a", "a/b", "a/b/c"])
def test_thousands_of_streams_are_folded_as_the_definition_says(purpose: str) -> None:
    assert 100 < compare(random.Random(28), 600, purpose) < 3 * 600


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


@pytest.mark.parametrize("decided", [one for one in Decided if one is not Decided.VOID])
def test_a_decision_against_of_a_day_is_taken_at_its_end_and_a_consent_at_its_start(decided: Decided) -> None:
    day, now = ConsentEvent(ANN, decided, "a", DAYS[0]), moment("2026-01-01T18:00:00Z")
    hour = replace(day, at=moment("2026-01-01T09:00:00Z"))
    assert hour.settled(DAYS[7]) == hour
    settled = [day.settled(DAYS[7]).at, day.settled(now).at, day.settled(DAYS[0]).at]
    against = [moment("2026-01-01T23:59:59.999999Z"), now, DAYS[0]]
    assert settled == ([DAYS[0]] * 3 if decided is Decided.GIVE else against)
    assert day.settled(now).valid_from == DAYS[0]
    consent = replace(hour, decided=Decided.GIVE)
    stream = [(DAYS[1], consent), (DAYS[1], day.settled(DAYS[7]))]
    assert (ANN in consenting(stream, "a", AsOf(DAYS[2], DAYS[2]))) == day.gives


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


def test_a_correction_names_the_wrong_decision_and_takes_its_place() -> None:
    left = ConsentEvent(ANN, Decided.WITHDRAW, "a", DAYS[3])
    void = ConsentEvent(ANN, Decided.VOID, "a", DAYS[5], corrects=DAYS[3])
    found = [(DAYS[0], give(0)), (DAYS[3], left), (DAYS[5], void)]
    known = {day: [ANN in consenting(found, "a", AsOf(valid, day)) for valid in DAYS] for day in DAYS}
    assert known[DAYS[4]] == days_in_force(0, 3), "until it was recorded, the wrong one counts"
    assert known[DAYS[5]] == days_in_force(0, 8)
    moved = replace(left, at=DAYS[6], valid_from=DAYS[6], corrects=DAYS[3])
    assert in_force(give(0), left, moved) == days_in_force(0, 6)
    assert in_force(give(0), left, replace(void, subject=BOB)) == days_in_force(0, 3), "of another person: nothing"
    with pytest.raises(InvalidParameter, match="name its time"):
        ConsentEvent(ANN, Decided.VOID, "a", DAYS[0])


def test_a_guardians_consent_ends_when_the_person_comes_of_age() -> None:
    mother = replace(give(1), guardian="mother", of_age=DAYS[4])
    assert in_force(mother) == days_in_force(1, 4)
    assert in_force(give(0), mother) == days_in_force(0, 4), "it replaced what was before it"
    assert in_force(mother, give(5)) == [*days_in_force(1, 4)[:5], True, True, True]
    left = replace(mother, decided=Decided.WITHDRAW, at=DAYS[2], valid_from=DAYS[2])
    assert in_force(give(0), left) == days_in_force(0, 2), "a guardian's withdrawal has no end"
    with pytest.raises(InvalidParameter, match="only before the day"):
        replace(mother, at=DAYS[4], valid_from=DAYS[4])
    with pytest.raises(InvalidParameter, match="name the guardian"):
        replace(mother, guardian="")


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
    monkeypatch.setattr(state, "_ROWS", 5)
    chance = random.Random(19)
    people = [f"{number:032x}" for number in range(150)]
    found = [(chance.choice(DAYS), random_event(chance, chance.choice(people), PURPOSES)) for _ in range(900)]
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


@given(st.lists(events(), min_size=1, max_size=6))
def test_columns_hold_what_rows_hold(found: list[Recorded]) -> None:
    told = [event for _, event in found]
    columns = EventColumns.of_rows([event.to_row() for event in told])
    assert list(EventColumns.read(json.loads(json.dumps(columns.to_json()))).events()) == told
    assert [ConsentEvent.from_row(event.to_row()) for event in told] == told


@pytest.mark.parametrize(
    "change", [{"subject": "xy"}, {"at": "AAAA"}, {"decided": [["give"], "Bw==", "u1"]}, {"purpose": None}]
)
def test_a_batch_that_is_damaged_lets_nobody_in(change: dict[str, Any]) -> None:
    plain = EventColumns.of_rows([give(0).to_row()]).to_json()
    with pytest.raises(LedgerCorrupted):
        EventColumns.read(plain | change)


def test_people_whose_pseudonyms_begin_alike_are_different_people() -> None:
    twins = [f"{7:016x}{number:016x}" for number in range(6)]
    found = [(DAYS[0], replace(give(0), subject=one)) for one in [*twins[3:], *twins[:3], *twins]]
    left = (DAYS[1], ConsentEvent(twins[4], Decided.WITHDRAW, "a", DAYS[1]))
    assert consenting([*found, left], "a", AsOf(DAYS[2], DAYS[2])) == set(twins) - {twins[4]}


def main() -> None:
    """Compare as many random people and moments as asked."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--moments", type=int, default=100_000)
    moments, chance, compared, consents = options.parse_args().moments, random.Random(), 0, 0
    while compared < moments:
        consents += compare(chance, 1000, chance.choice(PURPOSES[:3]))
        compared += 1000 * len(MOMENTS)
    print(f"{compared:,} people and moments, of which {consents:,} consent: no difference")


if __name__ == "__main__":
    main()
