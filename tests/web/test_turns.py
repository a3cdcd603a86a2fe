"""One who asks much at once is told so, and keeps nobody else from asking."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from incrowd.governance.grant import AccessRole
from incrowd.web.settings import Settings
from incrowd.web.turns import ConcurrencyLimit, ServerBusy, TooManyAtOnce
from tests.web.serving import Server, server

SLOW = {"sql": "SELECT slow FROM births", "epsilon": 1}
PRICE = {"sql": "SELECT COUNT(*) FROM births", "epsilon": 1}


@contextmanager
def asking(here: Server, headers: dict[str, str], times: int) -> Iterator[list[Future[httpx.Response]]]:
    """Ask slow questions until all are in hand; they end with the block."""
    services = here.client.application.state.services
    with ThreadPoolExecutor(times) as pool:
        try:
            waiting = [pool.submit(here.client.post, "/v1/query", json=SLOW, headers=headers) for _ in range(times)]
            while services.turns.inside.total() < times:
                time.sleep(0.01)
            yield waiting
        finally:
            here.desk.go.set()


def test_a_holder_has_so_many_questions_in_hand_and_others_are_not_kept_from_asking(tmp_path: Path) -> None:
    here = server(tmp_path, Settings(pace=0.0, threads=4, each=2))
    ann, bob = here.bearer(AccessRole.ANALYST, "ann"), here.bearer(AccessRole.ANALYST, "bob")
    with asking(here, ann, 2) as waiting:
        refused = here.client.post("/v1/query", json=SLOW, headers=ann)
        assert (refused.status_code, refused.headers["Retry-After"]) == (429, "1")
        assert "nothing was charged" in refused.json()["error"]
        assert here.client.post("/v1/query", json=PRICE, headers=bob).status_code == 200
    assert [each.result().status_code for each in waiting] == [200, 200]
    assert here.client.post("/v1/query", json=SLOW, headers=ann).status_code == 200


def test_a_full_server_says_so_at_once_and_still_tells_prices(tmp_path: Path) -> None:
    here = server(tmp_path, Settings(pace=0.0, threads=1, each=3, queue=3))
    ann, bob = here.bearer(AccessRole.ANALYST, "ann"), here.bearer(AccessRole.ANALYST, "bob")
    with asking(here, ann, 3):
        refused = here.client.post("/v1/query", json=SLOW, headers=bob)
        assert (refused.status_code, refused.json()["kind"]) == (503, "ServerUnavailable")
        assert here.client.post("/v1/price", json=PRICE, headers=bob).status_code == 200
        assert {each.analyst for each in here.desk.asked} == {"ann"}


def test_turns_are_given_back_whatever_happens() -> None:
    turns = ConcurrencyLimit(each=1, all=2)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), turns.of("ann"):
            raise ZeroDivisionError
    with turns.of("ann"), turns.of("bob"):
        with pytest.raises(TooManyAtOnce), turns.of("ann"):
            pass
        with pytest.raises(ServerBusy), turns.of("carl"):
            pass
    assert not turns.inside
