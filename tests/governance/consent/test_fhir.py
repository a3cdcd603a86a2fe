"""Consent resources of FHIR are read as decisions, or skipped with a true reason; one bad resource stops nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.governance.consent.event import Decided, moment
from incrowd.governance.consent.fhir import FhirReading, SkippedResource, read_fhir
from incrowd.governance.consent.record import ConsentRecord
from tests.governance.consent.fhir import write_fhir
from tests.policies import changed

FILE = Path(__file__).parent / "fixtures" / "consent.fhir.json"
BUNDLE: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
R4: dict[str, Any] = BUNDLE["entry"][0]["resource"]
R5: dict[str, Any] = {
    "resourceType": "Consent",
    "status": "active",
    "subject": {"reference": "Patient/p17"},
    "date": "2026-01-01",
    "decision": "permit",
    "policyBasis": {"url": "urn:notice:2026-1"},
    "provision": [{"purpose": [{"code": "research"}], "period": {"end": "2026-12-31"}}],
}
NOW = moment("2026-06-01T12:00:00Z")
READING = FhirReading("research/newborns", NOW)
PERMITS = FhirReading("research/newborns", NOW, permits=True)

days = st.sampled_from(["2026-01-01", "2026-02-01", "2026-03-01"]).map(moment)


@st.composite
def records(draw: st.DrawFn) -> ConsentRecord:
    decided = draw(st.sampled_from([one for one in Decided if one is not Decided.VOID]))
    ends = decided in (Decided.GIVE, Decided.RESTRICT) and draw(st.booleans())
    at = draw(days)
    begins = draw(days) if decided in (Decided.GIVE, Decided.REFUSE, Decided.RESTRICT) else at
    purpose = draw(st.sampled_from(["research", "research/newborns"]))
    more = {"valid_from": begins, "valid_to": moment("2026-12-31") if ends else ""}
    return ConsentRecord.of("p17", str(decided), purpose, at, **more, notice=draw(st.sampled_from(["", "urn:a"])))


def read(*resources: Any, reading: FhirReading = READING) -> list[ConsentRecord]:
    """Return the decisions of resources that are all read."""
    decisions = list(read_fhir(list(resources), reading))
    assert all(isinstance(one, ConsentRecord) for one in decisions), decisions
    return [one for one in decisions if isinstance(one, ConsentRecord)]


def reason(resource: Any, reading: FhirReading = READING) -> str:
    """Return why a resource is skipped."""
    (skipped,) = read_fhir([resource], reading)
    assert isinstance(skipped, SkippedResource), skipped
    assert "p17" not in skipped.reason
    return skipped.reason


def told(records: list[ConsentRecord]) -> list[tuple[str, str]]:
    return [(str(one.event.decided), one.event.purpose) for one in records]


@given(st.lists(records(), max_size=3))
def test_what_another_program_writes_is_read_as_it_was(made: list[ConsentRecord]) -> None:
    assert list(read_fhir(json.loads(json.dumps(write_fhir(made))))) == made


def test_a_bundle_is_read_resource_by_resource() -> None:
    decisions = read(BUNDLE)
    assert [str(one.event.decided) for one in decisions] == ["give", "refuse", "withdraw", "expire"]
    assert (decisions[0].subject, decisions[0].event.notice) == ("p17", "urn:notice:2026-1")
    assert [one.place for one in decisions] == [f"resource {number}" for number in range(1, 5)]


def test_other_resources_of_a_searchset_and_bad_ones_do_not_stop_a_file() -> None:
    outcome = {"resourceType": "OperationOutcome", "issue": []}
    entries = [{"resource": one} for one in (outcome, {"resourceType": "Patient", "id": "p17"}, {"status": 3}, R4)]
    searchset = {"resourceType": "Bundle", "type": "searchset", "entry": [*entries, {"fullUrl": "urn:x"}, "?"]}
    results = list(read_fhir(searchset, READING))
    assert [isinstance(one, ConsentRecord) for one in results] == [False, False, False, True, False, False]
    assert [one.harmless for one in results if isinstance(one, SkippedResource)] == [True, True, True, False, False]


def test_several_purposes_are_as_many_decisions() -> None:
    two = changed(R4, provision__purpose=[{"code": "research"}, {"code": "teaching"}])
    assert told(read(two)) == [("give", "research"), ("give", "teaching")]


def test_a_nested_provision_that_denies_a_purpose_is_a_refusal_of_it() -> None:
    nested = [{"type": "deny", "purpose": [{"code": "research/newborns"}], "actor": [{}]}]
    assert told(read(changed(R4, provision__purpose=[{"code": "research"}], provision__provision=nested))) == [
        ("give", "research"),
        ("refuse", "research/newborns"),
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"provision__actor": [{"role": {}, "reference": {}}]},
        {"provision__action": [{}]},
        {"provision__data": [{}]},
        {"provision__securityLabel": [{}]},
        {"provision__provision": [{"type": "deny", "actor": [{}]}]},
        {"provision__provision": [{"type": "permit", "purpose": [{"code": "research"}]}]},
        {"modifierExtension": [{}]},
    ],
)
def test_a_permit_with_limits_is_skipped_because_it_would_permit_too_much(change: dict[str, Any]) -> None:
    assert "would permit too much" in reason(changed(R4, **change))


def test_a_permit_that_cannot_be_taken_pauses_what_was_permitted_before_it() -> None:
    (limited,) = read_fhir(changed(R4, provision__actor=[{}], dateTime="2026-05-01"), READING)
    (unclear,) = read_fhir(R5, READING)
    assert isinstance(limited, SkippedResource)
    assert isinstance(unclear, SkippedResource)
    assert told([*limited.pauses, *unclear.pauses]) == [("restrict", "research/newborns"), ("restrict", "research")]
    just_before = [one.event.at for one in (*limited.pauses, *unclear.pauses)]
    assert just_before == [moment("2026-04-30T23:59:59.999999Z"), moment("2025-12-31T23:59:59.999999Z")]
    for change in ({"dateTime": None}, {"dateTime": "2099-01-01"}, {"patient": {"reference": "#x"}}):
        (skipped,) = read_fhir(changed(R4, provision__actor=[{}], **change), READING)
        assert isinstance(skipped, SkippedResource)
        assert not skipped.pauses


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"status": "draft"}, "draft"),
        ({"status": "proposed"}, "proposal"),
        ({"status": "not-done"}, "abandoned"),
        ({"status": "entered-in-error"}, "entered in error"),
        ({"status": "unknown"}, "status is unknown"),
        ({"status": "final"}, "none of FHIR"),
        ({"provision__purpose": []}, "names no purpose"),
        ({"provision__purpose": [{"code": "a//b"}]}, "a purpose is"),
        ({"provision__purpose": [{"display": "research"}]}, "cannot be read"),
        ({"provision__type": None}, "neither permit nor deny"),
        ({"provision": None}, "neither permit nor deny"),
        ({"dateTime": None}, "has no time"),
        ({"dateTime": "yesterday"}, "a moment is"),
        ({"dateTime": "2026-05-01T10:00:00"}, "a moment is"),
        ({"dateTime": "2027-01-01"}, "in the future"),
        ({"patient": {}}, "names no patient"),
        ({"patient": {"display": "p17"}}, "cannot be read"),
        ({"resourceType": "Patient"}, "not a Consent resource"),
    ],
)
def test_what_is_not_a_certain_decision_is_skipped_with_the_reason(change: dict[str, Any], says: str) -> None:
    assert says in reason(changed(R4, **change))


@pytest.mark.parametrize(
    ("rule", "purposes", "says"),
    [
        ("OPTIN", [], "names no purpose"),
        ("OPTIN", [{"code": "research"}], "not certain whether they are permitted"),
        ("OPTINR", [{"code": "research"}], "neither permit nor deny"),
    ],
)
def test_a_policy_rule_alone_permits_nothing(rule: str, purposes: list[Any], says: str) -> None:
    resource = changed(R4, provision={"purpose": purposes}, policyRule={"coding": [{"code": rule}]})
    assert says in reason(resource)


def test_a_refusal_is_taken_as_widely_as_it_may_be_meant() -> None:
    out = changed(R4, provision={"actor": [{}]}, policyRule={"coding": [{"code": "OPTOUT"}]})
    assert told(read(out)) == [("refuse", "research/newborns")], "of the purpose that is asked about"
    (late,) = read(changed(R4, provision__type="deny", dateTime=None, provision__data=[{}]))
    assert (str(late.event.decided), late.event.at) == ("refuse", NOW)
    (day,) = read(changed(R4, provision__type="deny", dateTime="2026-05-01"))
    assert day.event.at == moment("2026-05-01T23:59:59.999999Z"), "a consent of the same day does not undo it"
    (year,) = read(changed(R4, provision__type="deny", dateTime="2026"))
    assert year.event.at == NOW
    assert "no policy says" in reason(out, FhirReading("", NOW))
    emergency = changed(out, provision={"purpose": [{"code": "ETREAT"}]})
    assert told(read(emergency)) == [("refuse", "research/newborns"), ("refuse", "ETREAT")], "all but an exception"


def test_an_inactive_consent_with_a_period_is_a_withdrawal_without_an_end() -> None:
    (left,) = read(changed(R4, status="inactive", provision__period={"start": "2025-01-01", "end": "2026-01-31"}))
    assert (left.event.decided, left.event.valid_to) == (Decided.WITHDRAW, None)
    assert left.event.valid_from == left.event.at


def test_the_last_day_month_or_year_of_a_period_is_part_of_it() -> None:
    for end, after in (("2026-01-31", "2026-02-01"), ("2026-12", "2027-01-01"), ("2026", "2027-01-01")):
        (one,) = read(changed(R4, provision__period={"start": "2026-01", "end": end}))
        assert (one.event.valid_from, one.event.valid_to) == (moment("2026-01-01"), moment(after))
    (exact,) = read(changed(R4, provision__period={"end": "2026-12-31T12:00:00+01:00"}))
    assert exact.event.valid_to == moment("2026-12-31T11:00:00Z")


def test_the_purposes_of_a_permit_of_r5_are_taken_only_if_the_sender_means_them_so() -> None:
    assert "ask the sender" in reason(R5)
    (one,) = read(R5, reading=PERMITS)
    assert told([one]) == [("give", "research")]
    assert (one.subject, one.event.notice, one.event.valid_to) == ("p17", "urn:notice:2026-1", moment("2027-01-01"))
    (whole,) = read(
        changed(R5, period={"end": "2026-06-30"}, provision=[{"purpose": [{"code": "a"}]}]), reading=PERMITS
    )
    assert whole.event.valid_to == moment("2026-07-01"), "the period of the resource is that of its provisions"


def test_a_denial_of_r5_is_a_refusal() -> None:
    assert told(read(changed(R5, decision="deny"))) == [("refuse", "research/newborns"), ("refuse", "research")]
    assert told(read(changed(R5, decision="deny", provision=[]))) == [("refuse", "research/newborns")]
    assert told(read(changed(R5, status="inactive"))) == [("withdraw", "research/newborns"), ("withdraw", "research")]
    group = changed(R5, decision="deny", subject={"reference": "Group/p17"})
    assert "not one to a Patient" in reason(group)


def test_a_related_person_who_agreed_is_a_guardian_without_a_name() -> None:
    (one,) = read(changed(R4, performer=[{"reference": "RelatedPerson/mother-of-p17", "display": "Eva"}]))
    assert one.event.guardian == "related person"


@pytest.mark.parametrize(
    "reference",
    [
        "Patient/p9",
        "https://fhir.example/r4/Patient/p9",
        "https://fhir.example/r4/Patient/p9/_history/2",
        " Patient/p9/_history/2 ",
        "p9",
    ],
)
def test_a_patient_is_known_by_a_reference_too(reference: str) -> None:
    (one,) = read(changed(R4, patient={"reference": reference}))
    assert one.subject == "p9"


@pytest.mark.parametrize(
    "reference", ["#p17", "urn:uuid:p17", "Practitioner/p17", "Patient?identifier=p17", "Patient/"]
)
def test_a_reference_that_names_no_patient_is_not_taken_for_an_id(reference: str) -> None:
    assert "named by a reference" in reason(changed(R4, patient={"reference": reference}))
