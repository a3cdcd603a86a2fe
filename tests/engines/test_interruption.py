"""Deadlines: whatever goes wrong with one of them, the others are kept."""

from __future__ import annotations

import math
from threading import Event, Semaphore, Thread

import duckdb
import pytest

from incrowd.engines.interruption import Deadlines


def stopped(deadlines: Deadlines) -> bool:
    """Whether something that takes too long is stopped."""
    late = Event()
    with deadlines.within(0.0, late.set):
        return late.wait(60)


def test_what_cannot_be_stopped_keeps_nothing_else_from_being_stopped() -> None:
    deadlines, tried = Deadlines(), Event()

    def fail() -> None:
        tried.set()
        raise ValueError

    with deadlines.within(0.0, fail):
        assert tried.wait(60)
    assert stopped(deadlines)


def test_what_was_not_there_to_be_stopped_yet_is_stopped_when_it_is() -> None:
    early, deadlines = Semaphore(0), Deadlines()
    with duckdb.connect() as connection:

        def stop() -> None:
            connection.interrupt()
            early.release()

        with deadlines.within(0.0, stop):
            assert early.acquire(timeout=60)
            with pytest.raises(duckdb.InterruptException):
                connection.sql("SELECT SUM(a.range * b.range) FROM range(10000000) a, range(1000000) b").fetchall()


def test_a_time_that_never_comes_keeps_nothing_else_from_being_stopped() -> None:
    deadlines = Deadlines()
    with deadlines.within(math.inf, Event().set):
        assert stopped(deadlines)
        assert stopped(deadlines)


def test_a_thread_that_cannot_be_begun_is_begun_by_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Thread) -> None:
        raise RuntimeError

    deadlines = Deadlines()
    with monkeypatch.context() as patched:
        patched.setattr(Thread, "start", fail)
        with pytest.raises(RuntimeError), deadlines.within(0.0, Event().set):
            raise AssertionError
    assert not deadlines.waiting
    assert stopped(deadlines)
