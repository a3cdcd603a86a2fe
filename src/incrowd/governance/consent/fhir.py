"""FHIR: Consent resources of R4, R4B and R5, read as decisions, or skipped with the reason.

A permit is taken only as far as it is certain: one with limits that a purpose and a period do not express is skipped,
and pauses what the person consented to before it.  A decision against is taken as widely as it may be meant.  R5 calls
a provision an exception to the decision, so that the purposes of a permit may be those that are permitted or those that
are not; only the sender knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from incrowd.core.subjects import patient_of
from incrowd.errors import InvalidParameter
from incrowd.governance.consent.event import Decided, moment, written_moment
from incrowd.governance.consent.record import ConsentRecord

EVENT = "urn:incrowd:consent-event"
_PLAIN = frozenset({"id", "type", "period", "purpose", "provision"})
"""What of a provision a purpose and a period express."""
_ADDRESS = "/:#?"
"""What stands in references and in no id of FHIR."""
_PARTIAL = re.compile(r"(\d{4})(?:-(\d{2}))?")
_DAY = 10
_DECEMBER = 12
_NOT_DECIDED = {
    "draft": "it is a draft, and not a decision",
    "proposed": "it is a proposal, and not a decision",
    "not-done": "it was abandoned before anything was decided",
}
_WRONG = {
    "entered-in-error": "it was entered in error: if it was imported before, correct it with incrowd consent correct",
    "unknown": "its status is unknown, so it is not certain what was decided",
}
_LIMITED = "it is limited in ways that a purpose and a period do not express, and would permit too much without them"


@dataclass(frozen=True)
class SkippedResource:
    """A resource that was not read as a decision, by its place, and why; one that decides nothing is harmless."""

    place: str
    reason: str
    harmless: bool = False
    pauses: tuple[ConsentRecord, ...] = field(default=(), repr=False)
    """Restrictions of earlier consents: the person now consents to less, and it is not certain to what."""


@dataclass(frozen=True)
class FhirReading:
    """How resources are read: the purpose of a refusal that names none, the time now, the meaning of R5 provisions."""

    purpose: str = ""
    now: str = field(default_factory=lambda: written_moment(datetime.now().astimezone()))
    permits: bool = False
    """Whether the purposes in a permit of R5 are those that are permitted."""


class _Skip(Exception):
    def __init__(self, reason: str, *, harmless: bool = False, narrows: bool = False) -> None:
        super().__init__(reason)
        self.harmless = harmless
        self.narrows = narrows


def read_fhir(plain: Any, reading: FhirReading | None = None) -> Iterator[ConsentRecord | SkippedResource]:
    """Yield the decisions of Consent resources: alone, in a list, or in a Bundle of whatever type."""
    for number, resource in enumerate(_resources(plain), 1):
        place = f"resource {number}"
        try:
            records = [record.at_place(place) for record in _decisions(resource, reading or FhirReading())]
        except _Skip as skip:
            pauses = tuple(_pauses(resource, reading or FhirReading())) if skip.narrows else ()
            paused = "; an earlier consent of this person does not count until this is settled" if pauses else ""
            yield SkippedResource(place, f"{skip}{paused}", skip.harmless, pauses)
        except InvalidParameter as error:
            yield SkippedResource(place, str(error).removesuffix("."))
        except (KeyError, TypeError, AttributeError, IndexError, ValueError):
            yield SkippedResource(place, "it cannot be read as a Consent resource of FHIR R4, R4B or R5")
        else:
            yield from records


def _resources(plain: Any) -> Iterator[Any]:
    if isinstance(plain, list):
        for one in plain:
            yield from _resources(one)
    elif isinstance(plain, Mapping) and plain.get("resourceType") == "Bundle":
        for entry in plain.get("entry") or ():
            yield from _resources(entry.get("resource") if isinstance(entry, Mapping) else None)
    else:
        yield plain


def _decisions(resource: Mapping[str, Any], reading: FhirReading) -> Iterator[ConsentRecord]:
    """Yield the decisions of one resource, or skip it as a whole."""
    if not isinstance(resource, Mapping):
        raise _Skip("it holds no resource, or is not JSON")
    if resource.get("resourceType") != "Consent":
        raise _Skip("it is not a Consent resource", harmless=True)
    status = str(resource["status"])
    if status in _NOT_DECIDED:
        raise _Skip(_NOT_DECIDED[status], harmless=True)
    if status in _WRONG:
        raise _Skip(_WRONG[status])
    if status not in ("active", "inactive", "rejected"):
        raise _Skip("its status is none of FHIR")
    gives = status == "active" and _base(resource) == "permit"
    yield from _permits(resource, reading) if gives else _refuses(resource, reading, status)


def _base(resource: Mapping[str, Any]) -> str:
    """Return whether a resource permits or denies: by its decision (R5), root provision or policy rule (R4)."""
    if "decision" in resource:
        return _rule(resource["decision"])
    root = resource.get("provision") or {}
    if "type" in root:
        return _rule(root["type"])
    codes = [coding.get("code") for coding in (resource.get("policyRule") or {}).get("coding") or ()]
    if any(str(code).startswith("OPTOUT") for code in codes):
        return "deny"
    if "OPTIN" in codes and root.get("purpose"):
        raise _Skip("its root provision has purposes and no type, so it is not certain whether they are permitted")
    if codes == ["OPTIN"]:
        return "permit"
    raise _Skip("it says neither permit nor deny")


def _rule(text: Any) -> str:
    if text not in ("permit", "deny"):
        raise _Skip("it says neither permit nor deny")
    return str(text)


def _permits(resource: Mapping[str, Any], reading: FhirReading) -> Iterator[ConsentRecord]:
    """Yield a consent for each purpose, and a refusal for each purpose that a nested provision denies."""
    roots = _roots(resource)
    if "modifierExtension" in resource or any(not set(root) <= _PLAIN for root in roots):
        raise _Skip(_LIMITED, narrows=True)
    if "decision" in resource and any(root.get("purpose") for root in roots) and not reading.permits:
        raise _Skip(
            "in R5 the provisions of a permit are exceptions to it, so these purposes may be the ones that are not "
            "permitted: ask the sender; if they are permitted, import with --provisions-permit",
            narrows=True,
        )
    nested = [inner for root in roots for inner in root.get("provision") or ()]
    if any(_inner_rule(resource, inner) == "permit" or not inner.get("purpose") for inner in nested):
        raise _Skip(_LIMITED, narrows=True)
    if not any(root.get("purpose") for root in roots):
        raise _Skip("it names no purpose, so it is not certain to what the person consents")
    if "dateTime" not in resource and "date" not in resource:
        raise _Skip("it has no time, so it is not certain which decision is the later one")
    at = _first(str(resource.get("dateTime") or resource["date"]))
    if at > reading.now:
        raise _Skip("it has a time in the future")
    for root in roots:
        period = root.get("period") or resource.get("period") or {}
        times = {
            "valid_from": _first(period["start"]) if "start" in period else "",
            "valid_to": _after(period["end"]) if "end" in period else "",
        }
        for purpose in root.get("purpose") or ():
            yield _record(resource, Decided.GIVE, purpose["code"], at, times)
    for purpose in (purpose for inner in nested for purpose in inner["purpose"]):
        yield _record(resource, Decided.REFUSE, purpose["code"], at, {})


def _pauses(resource: Mapping[str, Any], reading: FhirReading) -> Iterator[ConsentRecord]:
    """Yield restrictions of what a person consented to before a permit that cannot be taken.

    Each stands just before the permit, so that the same permit, once it can be taken, counts.
    """
    text = str(resource.get("dateTime") or resource.get("date") or "")
    try:
        before = datetime.fromisoformat(_first(text)) - timedelta(microseconds=1)
        for purpose in dict.fromkeys(_purposes(resource) or [reading.purpose]):
            if purpose and written_moment(before) <= reading.now:
                yield _record(resource, Decided.RESTRICT, purpose, written_moment(before), {})
    except (_Skip, InvalidParameter, KeyError, TypeError, AttributeError, ValueError):
        return  # without a time, a patient or a purpose nothing can be paused


def _purposes(resource: Mapping[str, Any]) -> list[str]:
    """Return the codes of all purposes that any provision names."""
    named = (purpose for one in _walk(_roots(resource)) for purpose in one.get("purpose") or ())
    return [purpose["code"] for purpose in named if purpose.get("code")]


def _refuses(resource: Mapping[str, Any], reading: FhirReading, status: str) -> Iterator[ConsentRecord]:
    """Yield a decision against for each purpose that is named, and for the one that is asked about.

    Only a root provision of R4 that says deny is about its purposes alone; elsewhere they are exceptions.  A period is
    that of the consent that ended; a decision against has no end.  Without a time it is taken as of now, and a day is
    taken at its end, so that a consent of the same day does not undo it.
    """
    names = _purposes(resource)
    everything = not names or "decision" in resource or "type" not in _roots(resource)[0]
    purposes = list(dict.fromkeys([*([reading.purpose] if everything else []), *names]))
    if not purposes[0]:
        raise _Skip("it names no purpose, and no policy says which one is asked about")
    text = str(resource.get("dateTime") or resource.get("date") or "")
    at = min(_last(text), reading.now) if text else reading.now
    for purpose in purposes:
        decided = _against(resource, status)
        yield _record(resource, decided, purpose, at, _times(resource, decided))


def _times(resource: Mapping[str, Any], decided: Decided) -> dict[str, str]:
    """Return from when a refusal holds, where its own provision says so; a restriction also has an end."""
    roots = _roots(resource)
    own = decided in (Decided.REFUSE, Decided.RESTRICT) and len(roots) == 1
    period = roots[0].get("period") or {} if own else {}
    times = {"valid_from": _first(period["start"])} if "start" in period else {}
    ends = decided is Decided.RESTRICT and "end" in period
    return times | ({"valid_to": _after(period["end"])} if ends else {})


def _against(resource: Mapping[str, Any], status: str) -> Decided:
    own = [one["valueCode"] for one in resource.get("extension") or () if one.get("url") == EVENT]
    if status == "inactive":
        return Decided(own[0]) if own and own[0] != Decided.GIVE else Decided.WITHDRAW
    return Decided.REFUSE


def _roots(resource: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the provisions of a resource: R4 has one, R5 a list."""
    provision = resource.get("provision") or ()
    return [provision] if isinstance(provision, Mapping) else provision


def _walk(provisions: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for provision in provisions:
        yield provision
        yield from _walk(provision.get("provision") or ())


def _inner_rule(resource: Mapping[str, Any], inner: Mapping[str, Any]) -> str:
    """Return what a nested provision says: its type in R4; in R5 it is an exception to a permit."""
    return "deny" if "decision" in resource else _rule(inner.get("type"))


def _record(
    resource: Mapping[str, Any], decided: Decided, purpose: str, at: str, times: Mapping[str, str]
) -> ConsentRecord:
    more = {"basis": _basis(resource), "notice": _notice(resource), "guardian": _guardian(resource), **times}
    patient = resource.get("patient") or resource.get("subject")
    if not patient:
        raise _Skip("it names no patient")
    return ConsentRecord.of(_subject(patient), str(decided), purpose, at, **more)


def _subject(patient: Mapping[str, Any]) -> str:
    if "identifier" in patient:
        return str(patient["identifier"]["value"])
    reference = str(patient["reference"]).strip()
    named = patient_of(reference)
    if named is None and any(mark in reference for mark in _ADDRESS):
        raise _Skip(
            "its patient is named by a reference that is not one to a Patient with an id: write Patient/ID, or an "
            "identifier"
        )
    return named or reference


def _basis(resource: Mapping[str, Any]) -> str:
    return str((resource.get("policyRule") or {}).get("text") or "")


def _notice(resource: Mapping[str, Any]) -> str:
    policies = resource.get("policy") or ()
    return str((policies[0].get("uri") if policies else (resource.get("policyBasis") or {}).get("url")) or "")


def _guardian(resource: Mapping[str, Any]) -> str:
    """Return "related person" if one agreed in the patient's place; the name is not read."""
    people = [*(resource.get("performer") or ()), *(resource.get("grantor") or ())]
    return "related person" if any("RelatedPerson/" in str(one.get("reference", "")) for one in people) else ""


def _first(text: str) -> str:
    """Return the first moment of a year, a month, a day or a time."""
    match = _PARTIAL.fullmatch(text)
    return moment(text if match is None else f"{match[1]}-{match[2] or '01'}-01")


def _after(text: str) -> str:
    """Return the first moment after a year, a month, a day or a time: FHIR's last day is part of a period."""
    start = datetime.fromisoformat(_first(text))
    match = _PARTIAL.fullmatch(text)
    if match is None:
        return written_moment(start + timedelta(days=1) if len(text) == _DAY else start)
    last = match[2] is None or start.month == _DECEMBER
    return written_moment(start.replace(year=start.year + last, month=1 if last else start.month + 1))


def _last(text: str) -> str:
    """Return the last moment of a year, a month, a day or a time."""
    end = datetime.fromisoformat(_after(text))
    whole = _PARTIAL.fullmatch(text) is not None or len(text) == _DAY
    return written_moment(end - timedelta(microseconds=1) if whole else end)
