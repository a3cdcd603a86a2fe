from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from incrowd.errors import LedgerUnavailable
from incrowd.store.group_commit import BatchWriter, CommitQueue, QueuedChange


def test_what_comes_while_something_is_written_is_written_together_after_it() -> None:
    begun, go, written = threading.Event(), threading.Event(), list[list[int]]()

    def write(numbers: list[int]) -> None:
        begun.set()
        go.wait()
        written.append(numbers)

    writer = BatchWriter(write)
    writer.submit(1)
    begun.wait()
    writer.submit(2)
    writer.submit(3)
    go.set()
    writer.settle()
    assert written == [[1], [2, 3]]


def test_what_is_handed_over_after_the_end_is_written_at_once() -> None:
    written = list[list[int]]()
    writer = BatchWriter(written.append)
    writer.submit(1)
    assert writer.stop(60)
    writer.submit(2)
    writer.settle()
    assert written == [[1], [2]]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_fault_lets_nobody_wait_for_ever_and_the_next_thing_is_written() -> None:
    written = list[list[int]]()

    def write(numbers: list[int]) -> None:
        if numbers == [1]:
            raise ValueError
        written.append(numbers)

    writer = BatchWriter(write)
    writer.submit(1)
    writer.settle()
    writer.submit(2)
    writer.settle()
    assert written == [[2]]


def test_nothing_is_lost_that_is_submitted_while_the_writer_stops() -> None:
    for _ in range(50):
        written = list[int]()
        writer = BatchWriter(written.extend)
        ready = threading.Barrier(4)

        def submit(start: int, writer: BatchWriter[int] = writer, ready: threading.Barrier = ready) -> None:
            ready.wait()
            for number in range(start, start + 5):
                writer.submit(number)

        threads = [threading.Thread(target=submit, args=(start,)) for start in (0, 5, 10)]
        for thread in threads:
            thread.start()
        ready.wait()
        assert writer.stop(60)
        for thread in threads:
            thread.join()
        assert sorted(written) == list(range(15))


def test_no_caller_waits_for_a_wake_up_that_nobody_sends() -> None:
    """Many callers at once, some of whose changes fail or are interrupted: each one returns."""
    queue, outcomes = CommitQueue(), list[str]()

    def commit(changes: list[QueuedChange]) -> None:
        queue.take_waiting(changes)
        for change in changes:
            change.apply(None)  # type: ignore[arg-type]

    def change(number: int) -> int:
        if number % 5 == 0:
            raise KeyError(number)
        if number % 7 == 0:
            raise LedgerUnavailable("the disk is full.")
        return number

    def run(number: int) -> None:
        try:
            outcomes.append(str(queue.run(lambda _: change(number), commit) == number))
        except (KeyError, LedgerUnavailable) as problem:
            outcomes.append(type(problem).__name__)

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(300)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(outcomes) == 300
    assert "False" not in outcomes
    assert queue.run(lambda _: 7, commit) == 7


def test_whose_work_was_done_waits_for_nobody_who_came_later() -> None:
    queue, outcomes, end = CommitQueue(), list[str](), threading.Event()

    def ask(name: str, together: Callable[[list[QueuedChange]], None]) -> None:
        queue.run(lambda _: None, together)
        outcomes.append(name)

    def come(thread: threading.Thread) -> None:
        thread.start()
        while not queue.waiting:
            time.sleep(0.001)

    def taking_all(works: list[QueuedChange]) -> None:
        come(threads[1])
        queue.take_waiting(works)  # what came meanwhile is done along
        come(threads[2])

    def never(_works: list[QueuedChange]) -> None:
        raise AssertionError

    threads = [
        threading.Thread(target=ask, args=(name, together))
        for name, together in (("first", taking_all), ("along", never), ("later", lambda _: end.wait()))
    ]
    threads[0].start()
    for thread in threads[:2]:
        thread.join()
    assert sorted(outcomes) == ["along", "first"]
    end.set()
    threads[2].join()
    assert outcomes[2:] == ["later"]


def test_whoever_is_interrupted_leaves_the_line_to_the_next() -> None:
    queue = CommitQueue()

    def interrupted(_works: list[QueuedChange]) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        queue.run(lambda _: None, interrupted)
    assert queue.run(lambda _: None, lambda works: setattr(works[0], "result", 7)) == 7
