"""Whatever fails between a charge and its publication says what is not refunded, and the ledger shows it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import csv

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.engines.sql.duckdb import Warehouse
from incrowd.engines.writers import sinks
from incrowd.errors import LedgerUnavailable, PackageMissing
from incrowd.store.chain import Chain
from incrowd.workflows.registry import check_of
from incrowd.workflows.release import deliver, libraries, prepare, tables
from incrowd.workflows.release import run as road
from incrowd.workflows.release.tables import release
from tests.cli.running import Runner
from tests.policies import PEOPLE, changed, people, with_ledger, written

SENTENCE = "the charge is not refunded: epsilon 0.941398 and delta 0.0001 of dataset people."
RELEASE = "release people.csv --policy policy.yaml --out out"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner(capsys)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    csv.write_csv(people(), tmp_path / "people.csv")
    written(PEOPLE, tmp_path)
    return tmp_path


def failing(error: BaseException) -> Callable[..., Any]:
    def fail(*_arguments: object, **_named: object) -> Any:
        raise error

    return fail


def killed(number: int) -> Callable[..., Any]:
    def kill(*_arguments: object, **_named: object) -> Any:
        os.kill(os.getpid(), number)
        raise AssertionError("the signal did not arrive")

    return kill


def lost(run: Runner) -> list[dict[str, Any]]:
    return list(run("ledger show --json").json["nothing_came"])


PLACES = [
    (deliver, "write_files"),
    (road, "certify"),
    (tables, "write_internal"),
    (sinks, "_force"),
    (sinks, "appear"),
    (type(check_of("safe")), "inspect"),
]
ERRORS: list[tuple[Callable[[], BaseException], int]] = [
    (MemoryError, 70),
    (lambda: ImportError("no such library"), 70),
    (KeyboardInterrupt, 130),
    (lambda: RuntimeError("Query interrupted"), 130),
    (lambda: pa.ArrowInvalid("a value"), 70),
]
FAULTS = [(place, ZeroDivisionError, 70) for place in PLACES] + [(PLACES[0], error, code) for error, code in ERRORS]


@pytest.mark.parametrize("fault", FAULTS)
def test_an_error_anywhere_after_the_charge_names_what_stays_spent(
    folder: Path, run: Runner, monkeypatch: pytest.MonkeyPatch, fault: tuple[Any, Callable[[], BaseException], int]
) -> None:
    (place, name), error, code = fault
    monkeypatch.setattr(place, name, failing(error()))
    done = run(RELEASE)
    assert (done.code, done.err.count("not refunded")) == (code, 1)
    assert done.err.rstrip().endswith(SENTENCE)
    assert "a value" not in done.err
    assert not (folder / "out").exists()
    (found,) = lost(run)
    assert (found["state"], found["spent"][0]["dataset"]) == ("no release", "people")
    assert found["spent"][0]["epsilon"].startswith("0.94139")
    assert "Charges without a release" in run("ledger show").out


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_after_the_charge_names_what_stays_spent(
    folder: Path, run: Runner, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    before = signal.getsignal(number)
    monkeypatch.setattr(deliver, "write_files", killed(number))
    done = run(f"{RELEASE} --json")
    assert done.code == 130
    assert SENTENCE in done.err
    assert lost(run)[0]["state"] == "no release"
    assert not (folder / "out").exists()
    assert signal.getsignal(number) == before


def test_a_signal_before_the_charge_says_nothing_of_one(
    folder: Path, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepare, "prepare", killed(signal.SIGTERM))
    done = run(RELEASE)
    assert (done.code, done.err) == (130, "incrowd: interrupted.\n")
    assert folder.exists()


def test_an_interruption_after_everything_appeared_is_not_told_as_a_loss(
    folder: Path, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    appear = sinks.appear

    def late(*arguments: Any) -> None:
        appear(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(sinks, "appear", late)
    done = run(RELEASE)
    assert (done.code, "spent" in done.err) == (130, False)
    assert (folder / "out" / "certificate.json").exists()
    assert lost(run) == []


def test_a_lost_reply_to_the_commit_is_looked_up(folder: Path, run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    commit, lose = Chain._commit_once, [True]

    def deaf(self: Chain, changes: Any) -> None:
        commit(self, changes)
        if any(getattr(change.result, "kind", "") == "charge" for change in changes) and lose.pop():
            raise LedgerUnavailable("the ledger cannot be reached, or hung up.")

    monkeypatch.setattr(Chain, "_commit_once", deaf)
    done = run(RELEASE)
    assert (done.code, SENTENCE in done.err) == (2, True)
    assert lost(run)[0]["state"] == "no release"
    assert folder.exists()


def test_a_ledger_that_is_gone_after_the_charge_leaves_the_amount_in_the_message(
    folder: Path, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_arguments: object) -> Any:
        (folder / ".incrowd" / "ledger.sqlite").rename(folder / "elsewhere.sqlite")
        raise MemoryError

    monkeypatch.setattr(deliver, "write_files", gone)
    done = run(RELEASE)
    assert done.code == 70
    assert f"the ledger did not say whether it holds the charge. If it does, {SENTENCE}" in done.err


def test_a_charge_whose_process_was_killed_is_listed_as_open(folder: Path, run: Runner) -> None:
    child = os.fork()
    if child == 0:
        deliver.write_files = killed(signal.SIGKILL)
        run(RELEASE)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    ((found,),) = (lost(run),)
    assert found["state"] == "not concluded: still running, or killed"
    assert "Charges without a release" in run("ledger show").out
    assert not (folder / "out").exists()


def test_a_library_that_is_missing_costs_nothing(folder: Path, run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "_NEEDED", (*libraries._NEEDED, "a_library_that_nobody_has"))
    done = run(RELEASE)
    assert (done.code, "a_library_that_nobody_has is missing" in done.err) == (PackageMissing.exit_code, True)
    assert lost(run) == []
    assert folder.exists()


def test_in_python_the_sentence_is_in_the_error_or_a_note_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(road, "certify", failing(MemoryError()))
    with pytest.raises(MemoryError) as caught:
        release(people(), with_ledger(PEOPLE, tmp_path))
    assert SENTENCE in " ".join(caught.value.__notes__)
    assert len(Ledger.open(f"sqlite:///{tmp_path}/ledger.sqlite").unfinished()) == 1


@pytest.mark.parametrize("error", [lambda: RuntimeError("Query interrupted"), KeyboardInterrupt])
def test_an_interrupted_question_names_what_stays_spent(
    folder: Path, run: Runner, monkeypatch: pytest.MonkeyPatch, error: Callable[[], BaseException]
) -> None:
    written(changed(PEOPLE, release=None, queries={}, budget={"epsilon": 2}), folder)
    monkeypatch.setattr(Warehouse, "collect_together", failing(error()))
    done = run("query 'SELECT COUNT(*) FROM people' --epsilon 1 --policy policy.yaml --data people.csv")
    assert done.code == 130
    assert "Nothing was answered; the charge is not refunded: epsilon 1 and delta 0 of dataset people." in done.err
    assert lost(run)[0]["state"] == "no release"
