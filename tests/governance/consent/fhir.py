"""Decisions as Consent resources of FHIR R4, as another program would write them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from incrowd.governance.consent.event import Decided
from incrowd.governance.consent.fhir import EVENT
from incrowd.governance.consent.record import ConsentRecord

PURPOSES = "urn:incrowd:purpose"
_SCOPE = "http://terminology.hl7.org/CodeSystem/consentscope"
_CATEGORY = "http://terminology.hl7.org/CodeSystem/v3-ActCode"
_STATUS = {Decided.GIVE: "active", Decided.REFUSE: "rejected"}


def write_fhir(records: Iterable[ConsentRecord]) -> dict[str, Any]:
    """Return decisions as a Bundle of Consent resources."""
    entries = [{"resource": _written(record)} for record in records]
    return {"resourceType": "Bundle", "type": "collection", "entry": entries}


def _written(record: ConsentRecord) -> dict[str, Any]:
    event = record.event
    period = {"start": event.valid_from} | ({} if event.valid_to is None else {"end": event.valid_to})
    known = event.decided in (*_STATUS, Decided.WITHDRAW)
    return {
        "resourceType": "Consent",
        **({} if known else {"extension": [{"url": EVENT, "valueCode": str(event.decided)}]}),
        "status": _STATUS.get(event.decided, "inactive"),
        "scope": {"coding": [{"system": _SCOPE, "code": "research"}]},
        "category": [{"coding": [{"system": _CATEGORY, "code": "RESEARCH"}]}],
        "patient": {"identifier": {"value": record.subject}},
        "dateTime": event.at,
        **({"policy": [{"uri": event.notice}]} if event.notice else {}),
        "policyRule": {"text": event.basis},
        "provision": {
            "type": "permit" if event.gives else "deny",
            "period": period,
            "purpose": [{"system": PURPOSES, "code": event.purpose}],
        },
    }
