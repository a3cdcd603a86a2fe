"""A user who asks often, or much at once, is refused, and keeps nobody else from asking."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.governance.grant import AccessRole
from incrowd.web.answering import NotStarted, ReplyTimer, TimedOut, bucket
from incrowd.web.concurrency import ConcurrencyLimit, RateLimiter, ThreadJobs, ThreadPool
from incrowd.web.replies import ServerBusy, TooManyAtOnce
from incrowd.web.settings import Settings
from incrowd.web.slots import Slots
from tests.web.serving import Server, server

T = TypeVar("T")

SLOW = {"sql": "SELECT slow FROM births", "epsilon": 1}
PRICE = {"sql": "SELECT COUNT(*) FROM births", "epsilon": 1}


PATIENCE = 300.0
"""Seconds that a test waits for what certainly happens: on a busy machine it may take long."""


class Prompt(ThreadPool):
    """A pool whose work has begun when it was handed over, however busy the machine is."""

    def submit(self, work: Callable[[], T], user: str = "") -> Future[T]:
        begun = threading.Event()

        def begin() -> T:
            begun.set()
            return work()

        job = super().submit(begin, user)
        assert begun.wait(PATIENCE)
        return job


def holding(begun: threading.Event, go: threading.Event) -> Callable[[], int]:
    """Work that says when it begins, and ends when it is told to."""

    def work() -> int:
        begun.set()
        go.wait(PATIENCE)
        return 1

    return work


async def waited(pool: ThreadPool, work: Callable[[], None], settings: Settings) -> None:
    await ReplyTimer(settings).done(pool.submit(work))


def test_what_was_begun_is_finished_and_what_waits_is_cancelled() -> None:
    pool, begun, go = ThreadPool(1), threading.Event(), threading.Event()

    first = pool.submit(holding(begun, go))
    second = pool.submit(lambda: 2)
    assert begun.wait(PATIENCE)
    threading.Timer(0.1, go.set).start()
    assert pool.stop(PATIENCE)
    assert first.result() == 1
    assert second.cancelled()


def test_work_that_never_ends_does_not_hold_the_stop_up() -> None:
    pool, begun, never = ThreadPool(1), threading.Event(), threading.Event()
    job = pool.submit(holding(begun, never))
    assert begun.wait(PATIENCE)
    assert not pool.stop(0.1)
    assert not job.done()
    never.set()


def test_an_error_reaches_whoever_waits_and_the_thread_goes_on() -> None:
    pool = ThreadPool(1)
    failing = pool.submit(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        failing.result()
    assert pool.submit(lambda: 3).result() == 3
    assert pool.stop(PATIENCE)


def test_whoever_has_long_work_leaves_threads_to_others() -> None:
    pool, begun, go = ThreadPool(2), threading.Event(), threading.Event()
    first, second = (pool.submit(holding(begun, go), "ann") for _ in range(2))
    assert begun.wait(PATIENCE)
    assert pool.submit(lambda: 3, "bob").result(PATIENCE) == 3
    assert not second.running()
    go.set()
    assert (first.result(PATIENCE), second.result(PATIENCE)) == (1, 1)
    assert pool.stop(PATIENCE)


def taken(jobs: ThreadJobs) -> list[str]:
    """Take all jobs that may be at work now, and return whose they are."""
    found = list[str]()
    jobs.ended = True  # so that nobody waits for more
    while (job := jobs.take()) is not None:
        found.append(job[0])
    jobs.ended = False
    return found


def put(jobs: ThreadJobs, *holders: str) -> None:
    for holder in holders:
        jobs.put((Future(), lambda: None), holder)


def test_those_who_had_something_to_do_lately_share_what_one_alone_may_have() -> None:
    now = [0.0]
    jobs = ThreadJobs(2, clock=lambda: now[0])
    put(jobs, *["ann"] * 5)
    assert taken(jobs) == ["ann"] * 2
    put(jobs, "bob")
    assert taken(jobs) == ["bob"]
    jobs.done("ann")
    jobs.done("bob")
    assert taken(jobs) == [], "bob may come again soon"
    now[0] += 2.0
    assert taken(jobs) == ["ann"]


def test_a_holder_has_its_part_of_the_machine_whichever_workers_have_its_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("incrowd.web.concurrency.cores", lambda: 2)
    now = [0.0]
    here, there = (ThreadJobs(2, Slots(tmp_path), clock=lambda: now[0]) for _ in range(2))
    for jobs in (here, there):
        put(jobs, "ann", "bob", "bob", "bob")
    assert (taken(here), taken(there)) == (["ann", "bob"], [])
    here.done("bob")
    assert taken(here) == [], "who has more to do here leaves the slot to those there"
    assert taken(there) == ["bob"]
    now[0] += 0.5
    assert taken(here) == []
    there.done("bob")
    here.done("ann")
    assert (taken(here), taken(there)) == (["bob"], ["ann"])


def test_where_no_file_can_be_locked_everybody_has_a_slot(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    slots = Slots(tmp_path / "file" / "folder")
    leave = slots.take("ann", 1)
    assert leave is not None
    leave()


def test_users_of_different_workers_share_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("incrowd.web.concurrency.cores", lambda: 2)
    now = [0.0]
    slots = Slots(tmp_path, clock=lambda: now[0])
    here, there = (ThreadJobs(2, slots, clock=lambda: now[0]) for _ in range(2))
    put(here, *["ann"] * 3)
    assert taken(here) == ["ann"] * 2, "she is alone on the machine"
    put(there, *["bob"] * 3)
    assert taken(there) == ["bob"]
    here.done("ann")
    assert taken(here) == [], "bob is at another worker"
    now[0] += 2.0
    assert taken(here) == ["ann"], "he was there long ago"
    assert len(list(tmp_path.glob("*.user"))) == 2
    now[0] += 100.0
    assert taken(here) == []
    assert len(list(tmp_path.glob("*.user"))) == 1, "his file is removed, hers has a new time"


def test_whoever_is_alone_needs_no_slot(tmp_path: Path) -> None:
    here, there = (ThreadJobs(2, Slots(tmp_path)) for _ in range(2))
    for jobs in (here, there):
        put(jobs, *["ann"] * 3)
    assert (taken(here), taken(there)) == (["ann"] * 2, ["ann"] * 2)


def test_a_job_that_waits_for_a_slot_is_begun_once_it_is_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("incrowd.web.concurrency.cores", lambda: 2)
    slot, pool = Slots(tmp_path).take("bob", 1), ThreadPool(2, slots=Slots(tmp_path))
    assert slot is not None
    assert pool.submit(lambda: 1, "ann").result(PATIENCE) == 1
    waiting = pool.submit(lambda: 2, "bob")
    assert pool.submit(lambda: 3, "ann").result(PATIENCE) == 3
    slot()
    assert waiting.result(PATIENCE) == 2
    assert pool.stop(PATIENCE)


def test_work_that_waits_too_long_for_its_turn_is_never_begun() -> None:
    pool, begun, go = ThreadPool(1), threading.Event(), threading.Event()
    pool.submit(holding(begun, go))
    assert begun.wait(PATIENCE)
    done: list[int] = []
    settings = Settings(pace=0.0, longest=0.05)
    with pytest.raises(NotStarted):
        asyncio.run(waited(pool, lambda: done.append(1), settings))
    go.set()
    assert pool.stop(PATIENCE)
    assert done == []


def test_work_that_takes_too_long_goes_on_without_whoever_waited() -> None:
    pool, begun, go = Prompt(1), threading.Event(), threading.Event()
    done: list[int] = []
    work, settings = holding(begun, go), Settings(pace=0.0, longest=0.05)
    with pytest.raises(TimedOut):
        asyncio.run(waited(pool, lambda: done.append(work()), settings))
    go.set()
    assert pool.stop(PATIENCE)
    assert done == [1]


@given(st.floats(0.0, 1e4), st.floats(0.01, 10.0))
def test_replies_leave_at_the_pace_times_a_power_of_two(elapsed: float, pace: float) -> None:
    found = bucket(elapsed, pace)
    assert found >= elapsed * (1 - 1e-12)
    assert found in [pace * 2.0**power for power in range(40)]
    assert found == pace or found < 2 * elapsed * (1 + 1e-12)


@given(st.lists(st.floats(0.0, 30.0), max_size=60), st.integers(1, 20))
def test_nobody_knocks_more_often_than_allowed(pauses: list[float], rate: int) -> None:
    now = [0.0]
    limiter = RateLimiter(rate, clock=lambda: now[0])
    passed = []
    for pause in pauses:
        now[0] += pause
        if limiter.wait("ann") == 0.0:
            passed.append(now[0])
    for number, moment in enumerate(passed):
        within = [each for each in passed[number:] if each <= moment + 60.0]
        assert len(within) <= 2 * rate  # a full bucket, and what a minute refills


def test_whoever_waits_as_told_gets_in() -> None:
    now = [0.0]
    limiter = RateLimiter(2, clock=lambda: now[0])
    assert [limiter.wait("ann"), limiter.wait("ann")] == [0.0, 0.0]
    now[0] += limiter.wait("ann")
    assert limiter.wait("ann") == 0.0


@contextmanager
def asking(here: Server, headers: dict[str, str], times: int) -> Iterator[list[Future[httpx.Response]]]:
    """Ask slow questions until all are in hand; they end with the block."""
    services = here.client.application.state.services
    with ThreadPoolExecutor(times) as pool:
        try:
            waiting = [pool.submit(here.client.post, "/v1/query", json=SLOW, headers=headers) for _ in range(times)]
            while services.limit.held.total() < times:
                time.sleep(0.01)
            yield waiting
        finally:
            here.queries.go.set()


def test_a_holder_has_so_many_questions_in_hand_and_others_are_not_kept_from_asking(tmp_path: Path) -> None:
    here = server(tmp_path, Settings(pace=0.0, threads=4, per_user=2))
    ann, bob = here.bearer(AccessRole.ANALYST, "ann"), here.bearer(AccessRole.ANALYST, "bob")
    with asking(here, ann, 2) as waiting:
        refused = here.client.post("/v1/query", json=SLOW, headers=ann)
        assert (refused.status_code, refused.headers["Retry-After"]) == (429, "1")
        assert "nothing was charged" in refused.json()["error"]
        assert here.client.post("/v1/query", json=PRICE, headers=bob).status_code == 200
    assert [each.result().status_code for each in waiting] == [200, 200]
    assert here.client.post("/v1/query", json=SLOW, headers=ann).status_code == 200


def test_a_full_server_says_so_at_once_and_still_tells_prices(tmp_path: Path) -> None:
    here = server(tmp_path, Settings(pace=0.0, threads=1, per_user=3, queue=3))
    ann, bob = here.bearer(AccessRole.ANALYST, "ann"), here.bearer(AccessRole.ANALYST, "bob")
    with asking(here, ann, 3):
        refused = here.client.post("/v1/query", json=SLOW, headers=bob)
        assert (refused.status_code, refused.json()["kind"]) == (503, "ServerUnavailable")
        assert here.client.post("/v1/price", json=PRICE, headers=bob).status_code == 200
        assert {each.analyst for each in here.queries.asked} == {"ann"}


def test_turns_are_given_back_whatever_happens() -> None:
    limit = ConcurrencyLimit(per_user=1, total=2)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), limit.hold("ann"):
            raise ZeroDivisionError
    with limit.hold("ann"), limit.hold("bob"):
        with pytest.raises(TooManyAtOnce), limit.hold("ann"):
            pass
        with pytest.raises(ServerBusy), limit.hold("carl"):
            pass
    assert not limit.held
