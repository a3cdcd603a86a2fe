"""Long work goes on behind the pages: once for each key, with an end that can be asked for."""

from __future__ import annotations

import threading

from incrowd.errors import NotRefunded, Refused
from incrowd.web.studio.jobs import Jobs, State, Tell


def test_the_same_key_is_the_same_work_until_it_fails() -> None:
    jobs, times, go = Jobs(), list[int](), threading.Event()

    def work(_tell: Tell) -> int:
        go.wait(60)
        times.append(1)
        if len(times) < 2:
            raise Refused("the budget is spent.")
        return 7

    first, second = jobs.begin("a", "A", work), jobs.begin("a", "A", work)
    assert first.id == second.id
    go.set()
    assert jobs.wait(first.id).problem == "the budget is spent."
    third = jobs.begin("a", "A", work)
    assert jobs.wait(third.id).result == 7
    assert jobs.begin("a", "A", work).id == third.id
    jobs.forget("a")
    assert jobs.find("a") is None
    jobs.close()


def test_a_job_stops_when_it_is_told_to_and_says_how_far_it_is() -> None:
    jobs, begun = Jobs(), threading.Event()

    def work(tell: Tell) -> None:
        for place in range(10**9):
            tell(place % 1000, 1000)
            if place > 1500:
                begun.set()

    job = jobs.begin("count", "Counting", work)
    assert begun.wait(60)
    told = job if (now := jobs.get(job.id)) is None else now
    assert told.running
    assert told.passes > 1
    assert told.to_json()["total"] == 1000
    jobs.stop(job.id)
    over = jobs.wait(job.id)
    assert over.state is State.STOPPED
    assert over.problem == "stopped."
    jobs.close()


def test_a_fault_is_told_without_its_text() -> None:
    jobs = Jobs()

    def work(_tell: Tell) -> None:
        error = ValueError("age 42 of row 7")
        error.add_note("age 42")
        error.add_note(NotRefunded("The charge is not refunded: epsilon 1 of births."))
        raise error

    problem = jobs.wait(jobs.begin("a", "A", work).id).problem or ""
    assert "42" not in problem
    assert "not refunded" in problem
    jobs.close()
