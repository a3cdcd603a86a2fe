"""FHIR R4: decisions as Consent resources, alone, in a list or in a Bundle (HL7 FHIR 4.0.1, resource Consent).

What would narrow a consent and has no place here (actors, data, nested provisions) is refused: left out, it would give
more than the person gave.  `expire` and `restrict`, which FHIR does not know, are inactive with an extension.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from incrowd.core.subjects import patient_of
from incrowd.errors import InvalidParameter
from incrowd.governance.consent.event import Decided, moment, written_moment
from incrowd.governance.consent.records.record import ConsentRecord

EVENT = "urn:incrowd:consent-event"
_PROVISION = frozenset({"type", "period", "purpose"})
_DAY = 10
_ADDRESS = "/:#?"
"""What stands in references and in no id of FHIR."""


def read_fhir(plain: Any) -> Iterator[ConsentRecord]:
    """Yield the decision of each Consent resource; one that cannot be taken whole is named by its place."""
    for number, resource in enumerate(_resources(plain), 1):
        try:
            yield _read(resource).at_place(f"resource {number}")
        except InvalidParameter as error:
            raise InvalidParameter(f"resource {number}: {error}") from None
        except (KeyError, TypeError, AttributeError, IndexError, ValueError):
            raise InvalidParameter(f"resource {number}: this is no Consent resource of FHIR R4.") from None


def _resources(plain: Any) -> list[Mapping[str, Any]]:
    if isinstance(plain, list):
        return plain
    if isinstance(plain, Mapping) and plain.get("resourceType") == "Bundle":
        return [entry["resource"] for entry in plain.get("entry", ())]
    return [plain]


def _read(resource: Mapping[str, Any]) -> ConsentRecord:
    if resource["resourceType"] != "Consent":
        raise InvalidParameter("this is no Consent resource.")
    provision = resource.get("provision", {})
    if "modifierExtension" in resource or not set(provision) <= _PROVISION:
        raise InvalidParameter(
            "it is limited in ways that a purpose and a period do not tell, and would give too much without them."
        )
    (purpose,) = provision["purpose"]
    period = provision.get("period", {})
    policies = resource.get("policy", ())
    return ConsentRecord.of(
        _subject(resource["patient"]),
        str(_decided(resource, provision.get("type"))),
        purpose["code"],
        resource["dateTime"],
        valid_from=period.get("start", ""),
        valid_to=_end(period["end"]) if "end" in period else "",
        basis=resource.get("policyRule", {}).get("text", ""),
        notice=policies[0]["uri"] if policies else "",
    )


def _subject(patient: Mapping[str, Any]) -> str:
    if "identifier" in patient:
        return str(patient["identifier"]["value"])
    reference = str(patient["reference"]).strip()
    named = patient_of(reference)
    if named is None and any(mark in reference for mark in _ADDRESS):
        raise InvalidParameter(
            "its patient is named by a reference that is not one to a Patient with an id: write Patient/ID, or an "
            "identifier."
        )
    return named or reference


def _decided(resource: Mapping[str, Any], rule: str | None) -> Decided:
    own = [each["valueCode"] for each in resource.get("extension", ()) if each.get("url") == EVENT]
    match resource["status"], rule:
        case "active", "permit":
            return Decided.GIVE
        case ("active", "deny") | ("rejected", _):
            return Decided.REFUSE
        case "inactive", _:
            return Decided(own[0]) if own else Decided.WITHDRAW
    raise InvalidParameter("only consents that are active, inactive or rejected, and permit or deny, are decisions.")


def _end(text: str) -> str:
    """Return the first moment after a period: FHIR's last day is part of it; at a time, it ends there."""
    ends = datetime.fromisoformat(moment(text))
    return written_moment(ends + timedelta(days=1) if len(text) == _DAY else ends)
