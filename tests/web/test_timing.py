"""When a reply shows is decided by the question and the settings, before a row is read."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.errors import QueryRefused
from incrowd.governance.grant import AccessRole
from incrowd.web.answering import shown_after
from incrowd.web.settings import Settings
from tests.web.serving import server

ASK = {"sql": "SELECT COUNT(*) FROM births", "epsilon": "1/2"}


@given(st.integers(0, 10**12), st.floats(0.01, 5.0))
def test_more_work_shows_later_and_never_before_it_can_be_done(steps: int, pace: float) -> None:
    settings = Settings(pace=pace)
    if steps > settings.longest * settings.speed:
        with pytest.raises(QueryRefused):
            shown_after(steps, settings)
        return
    found = shown_after(steps, settings)
    assert found >= max(pace, steps / settings.speed * (1 - 1e-12))
    assert found in [pace * 2.0**power for power in range(20)]


@pytest.mark.parametrize("sql", ["births heavy", "births heavy crash", "births heavy source", "births heavy budget"])
def test_what_can_be_more_work_shows_later_whatever_comes_of_it(tmp_path: Path, sql: str) -> None:
    """An error that showed at once would tell that rows could not be read, or how soon."""
    here = server(tmp_path, Settings(pace=0.2, speed=2_000_000_000))
    headers, start, began = here.bearer(AccessRole.ANALYST), time.monotonic(), here.books.access.now()
    here.client.post("/v1/query", json=ASK | {"sql": sql}, headers=headers)
    assert all(moment >= start + 0.4 for moment in here.queries.shown)
    (event,) = here.books.audit.read(0, 10)
    assert event["at"] >= (began + timedelta(seconds=0.4)).isoformat(timespec="microseconds")


@pytest.mark.parametrize("pace", [0.0, 0.1])
def test_what_can_take_too_long_is_refused_before_it_is_asked(tmp_path: Path, pace: float) -> None:
    here = server(tmp_path, Settings(pace=pace))
    reply = here.client.post("/v1/query", json=ASK | {"sql": "births endless"}, headers=here.bearer(AccessRole.ANALYST))
    assert (reply.status_code, reply.json()["kind"], here.queries.asked) == (422, "QueryRefused", [])
    assert here.events() == [("query", "refused")]
