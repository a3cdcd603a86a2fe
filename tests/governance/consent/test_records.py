"""Decisions of other programs are read and written again as they are, or refused where something would be lost."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.errors import InvalidParameter
from incrowd.governance.consent.event import Decided, moment
from incrowd.governance.consent.record import (
    ConsentReceipt,
    ConsentRecord,
    read_27560,
    read_csv,
    write_27560,
    write_csv,
)
from tests.policies import changed

FIXTURES = Path(__file__).parent / "fixtures"
RECORDS: list[Any] = json.loads((FIXTURES / "consent.27560.json").read_text(encoding="utf-8"))

texts = st.text(st.sampled_from("aé\"',; <\t漢"), max_size=6)
days = st.sampled_from(["2026-01-01", "2026-02-01", "2026-03-01"]).map(moment)


@st.composite
def records(draw: st.DrawFn) -> ConsentRecord:
    decided = draw(st.sampled_from(list(Decided)))
    corrects = draw(days) if decided is Decided.VOID or draw(st.booleans()) else ""
    guardian = draw(st.sampled_from(["", "mother"]))
    ends = decided in (Decided.GIVE, Decided.RESTRICT) and draw(st.booleans())
    return ConsentRecord.of(
        draw(texts.filter(str.strip)),
        str(decided),
        draw(st.sampled_from(["research", "research/newborns"])),
        draw(days),
        valid_from=draw(days),
        valid_to=moment("2026-12-31") if ends else "",
        basis=draw(texts),
        notice=draw(texts),
        corrects=corrects,
        guardian=guardian,
        of_age=moment("2026-12-01") if guardian else "",
    )


@given(st.lists(records(), max_size=3))
def test_what_is_written_is_read_as_it_was_in_every_format(made: list[ConsentRecord]) -> None:
    assert list(read_csv(StringIO(write_csv(made)))) == made
    assert list(read_27560(json.loads(json.dumps(write_27560(made))))) == made


def test_records_of_27560_are_read_and_written_again_as_they_are() -> None:
    found = list(read_27560(RECORDS))
    assert [str(each.event.decided) for each in found] == ["give", "withdraw"]
    assert write_27560(found) == RECORDS


def test_a_record_with_several_purposes_and_events_holds_a_decision_for_each() -> None:
    whole = changed(RECORDS[0], pii_processing__purposes=[{"purpose": "research"}, {"purpose": "teaching"}])
    later = {"event_time": "2026-06-01", "event_state": "ConsentWithdrawn"}
    given_for = {"event_time": "2026-01-01", "event_state": "given", "validity_duration": "P2W"}
    found = list(read_27560(changed(whole, events=[given_for, later])))
    assert [(str(each.event.decided), each.event.purpose) for each in found] == [
        ("give", "research"),
        ("give", "teaching"),
        ("withdraw", "research"),
        ("withdraw", "teaching"),
    ]
    assert found[0].event.valid_to == moment("2026-01-15")


@pytest.mark.parametrize(
    "change",
    [
        {"record_header__schema_version": "1"},
        {"record_header": None},
        {"events": [{"event_time": "2026-01-01", "event_state": "asked"}]},
        {"events": [{"event_time": "2026-01-01", "event_state": "given", "validity_duration": "P1Y"}]},
        {"pii_processing__purposes": [{}]},
    ],
)
def test_a_record_that_cannot_be_read_is_refused_by_its_place(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match=r"^record 1: "):
        list(read_27560([changed(RECORDS[0], **change)]))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("subject,event\n", "has the columns"),
        ("subject,event,purpose,at,color\n", "has the columns"),
        ("subject,event,purpose,at\np1,give,research\n", "line 2: there are more or fewer"),
        ("subject,event,purpose,at\np1,give,research,2026-01-01,x\n", "line 2: there are more or fewer"),
        ("subject,event,purpose,at\np1,agree,research,2026-01-01\n", "line 2: an event is one of"),
        ("subject,event,purpose,at\n ,give,research,2026-01-01\n", "line 2: a record has no data subject"),
        ("subject,event,purpose,at\np1,give,a//b,2026-01-01\n", "line 2: a purpose"),
        ("subject,event,purpose,at\np1,give,a,2026-01-01T10:00:00\n", "line 2: a moment"),
    ],
)
def test_a_wrong_line_of_a_file_is_named_without_its_values(text: str, says: str) -> None:
    with pytest.raises(InvalidParameter, match=says) as caught:
        list(read_csv(StringIO(text)))
    assert "p1" not in str(caught.value)


HOSPITAL = (
    "\ufeffSubject ;event;purpose;at\r\n0017;withdraw;research;2026-01-01\r\n;;;\r\n"
    "Zoe\u0308;withdraw;research;2026-01-01\r\n"
)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_spreadsheet_of_withdrawals_is_read_as_it_is_saved(tmp_path: Path, encoding: str) -> None:
    text = HOSPITAL if encoding == "utf-8" else HOSPITAL.removeprefix("\ufeff")
    records = list(read_csv(StringIO(text.encode(encoding).decode("utf-8-sig" if encoding == "utf-8" else "utf-16"))))
    assert [(one.subject, one.place) for one in records] == [("0017", "line 2"), ("Zoe\u0308", "line 4")]


def test_a_receipt_is_a_record_and_a_page_that_escapes_what_people_wrote() -> None:
    record = ConsentRecord.of("<b>", "give", "research", "2026-01-01", notice="<script>")
    receipt = ConsentReceipt("<b>", moment("2026-02-01"), [(moment("2026-01-02"), record)])
    assert list(read_27560(receipt.to_json()["consent_records"])) == [record]
    page = receipt.to_html()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "http" not in page
