from __future__ import annotations

import threading

import pytest

from incrowd.store.clerk import BatchWriter


def test_what_comes_while_something_is_written_is_written_together_after_it() -> None:
    begun, go, written = threading.Event(), threading.Event(), list[list[int]]()

    def write(numbers: list[int]) -> None:
        begun.set()
        go.wait()
        written.append(numbers)

    clerk = BatchWriter(write)
    clerk.hand(1)
    begun.wait()
    clerk.hand(2)
    clerk.hand(3)
    go.set()
    clerk.settle()
    assert written == [[1], [2, 3]]


def test_what_is_handed_over_after_the_end_is_written_at_once() -> None:
    written = list[list[int]]()
    clerk = BatchWriter(written.append)
    clerk.hand(1)
    assert clerk.stop(60)
    clerk.hand(2)
    clerk.settle()
    assert written == [[1], [2]]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_fault_lets_nobody_wait_for_ever_and_the_next_thing_is_written() -> None:
    written = list[list[int]]()

    def write(numbers: list[int]) -> None:
        if numbers == [1]:
            raise ValueError
        written.append(numbers)

    clerk = BatchWriter(write)
    clerk.hand(1)
    clerk.settle()
    clerk.hand(2)
    clerk.settle()
    assert written == [[2]]
