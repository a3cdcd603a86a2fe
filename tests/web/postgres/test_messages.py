"""Messages are read exactly or refused with a constant text, whatever bytes arrive; sessions survive all of them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.governance.grant import AccessRole
from incrowd.web.caller import Caller
from incrowd.web.postgres import messages as m
from incrowd.web.postgres.door import Door
from incrowd.web.postgres.session import Session
from incrowd.web.postgres.values import BadValue, decoded, encoded, encoded_column
from tests.web.postgres.hostile import SECRET, hostile, hostile_firsts
from tests.web.serving import FAST, server


def _refusal(read: Callable[[], object], kind: type[Exception]) -> str:
    """Return why bytes are refused, nothing where they are read; any other exception is a fault."""
    try:
        read()
    except kind as refusal:
        return str(refusal)
    return ""


@given(st.binary(max_size=1), st.binary(max_size=60))
def test_any_bytes_are_a_message_or_refused(kind: bytes, body: bytes) -> None:
    assert len(_refusal(lambda: m.read_message(kind, body), m.ProtocolViolation)) < 80
    assert len(_refusal(lambda: m.read_first(body), m.ProtocolViolation)) < 80


@given(st.integers(0, 2**32))
def test_hostile_messages_are_read_or_refused(seed: int) -> None:
    for kind, body in islice(hostile(seed), 40):
        assert SECRET not in _refusal(partial(m.read_message, kind, body), m.ProtocolViolation)
    for body in islice(hostile_firsts(seed), 10):
        assert SECRET not in _refusal(partial(m.read_first, body), m.ProtocolViolation)


@given(
    st.binary(max_size=40), st.sampled_from((0, 16, 20, 21, 23, 25, 26, 700, 701, 1082, 1114, 1700, 99)), st.booleans()
)
def test_any_bytes_are_a_value_or_refused(value: bytes, type_: int, binary: bool) -> None:
    assert _refusal(lambda: decoded(value, type_, binary), BadValue) in ("", "a parameter is not a value of its type.")


@given(st.integers(-(2**63), 2**63 - 1), st.booleans())
def test_whole_numbers_arrive_as_they_were(number: int, binary: bool) -> None:
    assert decoded(encoded(number, 20, binary), 20, binary) == number


@given(
    st.lists(st.one_of(st.none(), st.integers(-(2**65), 2**65), st.floats(), st.text(), st.booleans()), max_size=4),
    st.sampled_from((20, 25, 701)),
    st.booleans(),
)
def test_a_column_is_sent_as_its_values_are(values: list[object], type_: int, binary: bool) -> None:
    def alone() -> list[bytes | None]:
        return [encoded(value, type_, binary) for value in values]

    try:
        expected = alone()
    except (ValueError, TypeError, OverflowError) as problem:
        with pytest.raises(type(problem)):
            encoded_column(values, type_, binary)
    else:
        assert encoded_column(values, type_, binary) == expected


def fed(folder: Path, seed: int, number: int) -> int:
    here = server(folder, FAST)
    here.queries.go.set()
    token = here.token(AccessRole.ANALYST)
    session = Session(Door(here.client.application.state.services), Caller(token.grant, token.token), 7)
    replied = 0
    for kind, body in islice(hostile(seed), number):
        try:
            message = m.read_message(kind, body)
        except m.ProtocolViolation:
            continue
        if not isinstance(message, m.Terminate | m.Password):
            reply = asyncio.run(session.replies(message))
            replied += bool(reply)
            if isinstance(message, m.Sync | m.SimpleQuery):
                assert reply[-6:-1] == b"Z\0\0\0\5"  # the client may always go on
                assert reply[-1:] in (b"I", b"T", b"E")
    here.client.application.state.close()
    return replied


def test_a_session_answers_hostile_messages_and_logs_no_question(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    assert fed(tmp_path, 7, 400) > 60
    assert not [record for record in caplog.records if SECRET in record.getMessage() + str(record.__dict__)]
