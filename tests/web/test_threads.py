from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.web.services import Limiter
from incrowd.web.settings import Settings
from incrowd.web.threads import ThreadPool
from incrowd.web.timing import NotFinished, NotStarted, Pacing, bucket

T = TypeVar("T")


PATIENCE = 300.0
"""Seconds that a test waits for what certainly happens: on a busy machine it may take long."""


@dataclass(frozen=True)
class Prompt(ThreadPool):
    """A pool whose work has begun when it was handed over, however busy the machine is."""

    def submit(self, work: Callable[[], T], holder: str = "") -> Future[T]:
        begun = threading.Event()

        def begin() -> T:
            begun.set()
            return work()

        job = super().submit(begin, holder)
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
    await Pacing(settings).done(pool.submit(work))


def test_what_was_begun_is_finished_and_what_waits_is_cancelled() -> None:
    pool, begun, go = ThreadPool.of(1), threading.Event(), threading.Event()

    first = pool.submit(holding(begun, go))
    second = pool.submit(lambda: 2)
    assert begun.wait(PATIENCE)
    threading.Timer(0.1, go.set).start()
    assert pool.stop(PATIENCE)
    assert first.result() == 1
    assert second.cancelled()


def test_work_that_never_ends_does_not_hold_the_stop_up() -> None:
    pool, begun, never = ThreadPool.of(1), threading.Event(), threading.Event()
    job = pool.submit(holding(begun, never))
    assert begun.wait(PATIENCE)
    assert not pool.stop(0.1)
    assert not job.done()
    never.set()


def test_an_error_reaches_whoever_waits_and_the_thread_goes_on() -> None:
    pool = ThreadPool.of(1)
    failing = pool.submit(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        failing.result()
    assert pool.submit(lambda: 3).result() == 3
    assert pool.stop(PATIENCE)


def test_work_that_waits_too_long_for_its_turn_is_never_begun() -> None:
    pool, begun, go = ThreadPool.of(1), threading.Event(), threading.Event()
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
    pool, begun, go = Prompt.of(1), threading.Event(), threading.Event()
    done: list[int] = []
    work, settings = holding(begun, go), Settings(pace=0.0, longest=0.05)
    with pytest.raises(NotFinished):
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
    limiter = Limiter(rate, clock=lambda: now[0])
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
    limiter = Limiter(2, clock=lambda: now[0])
    assert [limiter.wait("ann"), limiter.wait("ann")] == [0.0, 0.0]
    now[0] += limiter.wait("ann")
    assert limiter.wait("ann") == 0.0
