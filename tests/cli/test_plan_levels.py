from __future__ import annotations

import signal
import threading
from pathlib import Path

import pyarrow.csv
import pytest

from incrowd.cli.plan import _interrupted
from tests.cli.running import Runner
from tests.policies import PEOPLE, changed, people, written


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pyarrow.csv.write_csv(people(), tmp_path / "people.csv")
    release = {"method": "full-domain", "k": 5, "suppression": "0.1", "lowest": {"zip": 1}}
    written(changed(PEOPLE, release=release, budget={"unbounded": "invented rows"}), tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_a_plan_lists_minimal_levels_and_what_others_would_cost(run: Runner) -> None:
    done = run("plan people.csv --policy policy.yaml --minimal --frontier")
    assert done.code == 0
    told = " ".join(done.out.split())
    for words in (
        "minimal levels:",
        "of 16 combinations",
        "information loss at larger k",
        "information loss with more suppression",
        "keep it apart from the release",
    ):
        assert words in told


@pytest.mark.usefixtures("folder")
def test_minimal_levels_alone_are_one_table(run: Runner) -> None:
    told = " ".join(run("plan people.csv --policy policy.yaml --minimal").out.split())
    assert "minimal levels:" in told
    assert "larger k" not in told


@pytest.mark.usefixtures("folder")
def test_json_holds_every_choice(run: Runner) -> None:
    told = run("plan people.csv --policy policy.yaml --minimal --frontier --json").json["explored"]
    assert told["combinations"] == 16
    assert told["best"]["choice"] in [offer["choice"] for offer in told["by suppression"]]
    assert all(set(each["levels"]) == {"sex", "age", "zip"} for each in told["minimal"])


@pytest.mark.usefixtures("folder")
def test_without_rows_nothing_can_be_explored(run: Runner) -> None:
    done = run("plan --policy policy.yaml --frontier")
    assert done.code == 2
    assert "give a table" in done.err


def test_the_first_interrupt_asks_a_search_to_stop_and_the_second_ends_the_command() -> None:
    stopped = threading.Event()
    with _interrupted(stopped):
        signal.raise_signal(signal.SIGINT)
        assert stopped.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_afterwards_an_interrupt_is_an_interrupt_again() -> None:
    before = signal.getsignal(signal.SIGINT)
    with _interrupted(threading.Event()):
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before
