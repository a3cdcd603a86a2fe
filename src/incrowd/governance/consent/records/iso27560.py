"""ISO/IEC TS 27560:2023: decisions as consent records with header, processing, parties and events, in JSON.

The specification names the fields and leaves their notation open; here names are in snake case.  A record has one
person, and holds for each of its purposes and each of its events one decision.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from incrowd.core.codec import digest
from incrowd.errors import InvalidParameter
from incrowd.governance.consent.event import Decided, moment, written_moment
from incrowd.governance.consent.records.record import ConsentRecord

SCHEMA = "ISO/IEC TS 27560:2023"
_STATES = {
    Decided.GIVE: "given",
    Decided.REFUSE: "refused",
    Decided.WITHDRAW: "withdrawn",
    Decided.EXPIRE: "expired",
    Decided.RESTRICT: "restricted",
}
_DECIDED = {state: decided for decided, state in _STATES.items()}
_DURATION = re.compile(r"P(\d{1,5})([DW])")


def read_27560(plain: Any) -> Iterator[ConsentRecord]:
    """Yield the decisions of records; one that cannot be read is named by its place."""
    for number, record in enumerate(plain if isinstance(plain, list) else [plain], 1):
        try:
            yield from (each.at_place(f"record {number}") for each in _read(record))
        except InvalidParameter as error:
            raise InvalidParameter(f"record {number}: {error}") from None
        except (KeyError, TypeError, AttributeError, ValueError):
            raise InvalidParameter(f"record {number}: this is no consent record of {SCHEMA}.") from None


def write_27560(records: Iterable[ConsentRecord]) -> list[dict[str, Any]]:
    """Return decisions as consent records, one for each."""
    return [_written(record) for record in records]


def _read(record: Mapping[str, Any]) -> Iterator[ConsentRecord]:
    header, processing = record["record_header"], record["pii_processing"]
    if header["schema_version"] != SCHEMA:
        raise InvalidParameter(f"its schema is another one than {SCHEMA}.")
    for event in record["events"]:
        state = str(event["event_state"]).removeprefix("Consent").lower()
        if state not in _DECIDED:
            raise InvalidParameter(f"the state of an event is one of {', '.join(_DECIDED)}.")
        start, end = _validity(event)
        for each in processing["purposes"]:
            yield ConsentRecord.of(
                str(header["pii_principal_id"]),
                str(_DECIDED[state]),
                each["purpose"],
                event["event_time"],
                valid_from=start,
                valid_to=end,
                basis=each.get("lawful_basis", ""),
                notice=processing.get("privacy_notice", ""),
            )


def _validity(event: Mapping[str, Any]) -> tuple[str, str]:
    """Return from when until when an event holds: an interval of two times, or a duration in days or weeks."""
    told = event.get("validity_duration", "")
    if "/" in told:
        start, end = told.split("/")
        return start, "" if end == ".." else end
    found = _DURATION.fullmatch(told)
    if told and found is None:
        raise InvalidParameter("a duration is told in days or weeks such as P365D, or as an interval of two times.")
    if found is None:
        return "", ""
    days = int(found[1]) * (7 if found[2] == "W" else 1)
    return "", written_moment(datetime.fromisoformat(moment(event["event_time"])) + timedelta(days=days))


def _written(record: ConsentRecord) -> dict[str, Any]:
    event = record.event
    told = {
        "event_time": event.at,
        "validity_duration": f"{event.valid_from}/{event.valid_to or '..'}",
        "event_type": "explicit",
        "event_state": _STATES[event.decided],
        "entity_id": record.subject,
    }
    purpose = {"purpose": event.purpose, "lawful_basis": event.basis}
    return {
        "record_header": {
            "schema_version": SCHEMA,
            "record_id": digest("incrowd consent record 1", [record.subject, event.to_row()])[:32],
            "pii_principal_id": record.subject,
        },
        "pii_processing": {"privacy_notice": event.notice, "purposes": [purpose]},
        "events": [told],
    }
