from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from pyarrow import csv

from incrowd import __version__, errors
from incrowd.cli import entry
from incrowd.cli.main import VERBS, application, main
from incrowd.methods import METHODS
from tests.cli.running import Runner
from tests.policies import PEOPLE, people, written

SAFE = "bounds safe --k 20 --rate 0.1 --epsilon 0.5"


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=300, check=False)


def test_the_version_is_printed(run: Runner) -> None:
    assert run("--version").out == f"incrowd {__version__}\n"


def test_a_bare_command_prints_its_help_and_counts_as_bad_input(run: Runner) -> None:
    for line in ("", "bounds", "ledger"):
        outcome = run(line)
        assert outcome.code == 2
        assert "Usage: incrowd" in outcome.out
        assert outcome.err == ""


@pytest.mark.parametrize("line", ["bounds safe --help", "bounds crowd --help", "ledger check --help", "--help"])
def test_help_is_no_error(run: Runner, line: str) -> None:
    outcome = run(line)
    assert outcome.code == 0
    assert outcome.err == ""


@pytest.mark.parametrize(
    ("line", "named"),
    [("nonsense", "nonsense"), ("bounds safe --kk 20", "--k"), ("ledger close", "DATASET")],
)
def test_a_command_line_that_cannot_be_read_is_one_line_and_exit_2(run: Runner, line: str, named: str) -> None:
    outcome = run(line)
    assert outcome.code == 2
    assert outcome.out == ""
    assert outcome.err.startswith("incrowd: ")
    assert outcome.err.count("\n") == 1
    assert named in outcome.err
    assert "--help" in outcome.err


def test_with_json_a_usage_error_is_one_json_object_on_standard_error(run: Runner) -> None:
    outcome = run("bounds safe --kk 20 --json")
    assert outcome.code == 2
    assert outcome.out == ""
    assert json.loads(outcome.err)["kind"] == "Usage"


def test_with_json_an_expected_error_names_its_class(run: Runner) -> None:
    outcome = run("bounds safe --k 0 --rate 0.1 --epsilon 1 --json")
    assert (outcome.code, outcome.out) == (2, "")
    assert json.loads(outcome.err) == {
        "error": "k must be a whole number, 1 or more: the least count that is published.",
        "kind": "InvalidParameter",
    }


class _Failing:
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __call__(self, *_: object) -> None:
        raise self.error


@pytest.mark.parametrize(
    ("error", "code"),
    [(errors.InvalidParameter("no."), 2), (errors.BudgetExceeded("no."), 1), (errors.LedgerCorrupted("no."), 2)],
)
def test_an_expected_error_ends_with_its_own_exit_code(
    run: Runner, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int
) -> None:
    monkeypatch.setattr("incrowd.workflows.bounds.safe.solve", _Failing(error))
    outcome = run(SAFE)
    assert (outcome.code, outcome.err) == (code, "incrowd: no.\n")


def test_an_unexpected_error_shows_neither_trace_nor_text(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("INCROWD_TRACEBACK", raising=False)
    monkeypatch.setattr("incrowd.workflows.bounds.safe.solve", _Failing(KeyError("a patient's name")))
    outcome = run(SAFE)
    assert outcome.code == 70
    assert outcome.out == ""
    assert "KeyError" in outcome.err
    assert "patient" not in outcome.err
    assert "Traceback" not in outcome.err


def test_the_trace_of_an_unexpected_error_can_be_asked_for(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INCROWD_TRACEBACK", "1")
    monkeypatch.setattr("incrowd.workflows.bounds.safe.solve", _Failing(KeyError("x")))
    assert "Traceback" in run(SAFE).err


def test_an_interrupt_ends_with_130(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("incrowd.workflows.bounds.safe.solve", _Failing(KeyboardInterrupt()))
    assert run(SAFE).code == 130


def test_a_reader_that_goes_away_is_no_error() -> None:
    code = "import sys; from incrowd.cli.main import main; sys.exit(main(['bounds', 'safe', '--help']))"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    complaint = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=300) == 0
    assert complaint == ""


CHATTER = """\
import ctypes
from incrowd.cli import entry, main
command = main.main
def chatty():
    ctypes.CDLL(None).puts(b"a line of a library")  # in C's buffer, as solvers print
    return command()
main.main = chatty
entry.start()
"""


@pytest.mark.parametrize(("closed", "printed"), [("<&-", "incrowd "), (">&-", ""), ("2>&-", "incrowd ")])
def test_a_stream_that_the_caller_closed_leads_nowhere(closed: str, printed: str) -> None:
    line = f"{sys.executable} -m incrowd --version {closed}"
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(printed)


@pytest.mark.parametrize("json", [[], ["--json"]])
def test_a_standard_output_that_is_full_is_no_fault_of_incrowd(
    json: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert main([*SAFE.split(), *json]) == 2
    error = capsys.readouterr().err
    assert "standard output cannot be written: No space left on device." in error
    assert "bug" not in error
    assert ('"kind": "PrintingFailed"' in error) == bool(json)


def test_a_reader_who_closes_the_pipe_ends_a_command_without_a_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", encoding="utf-8") as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        assert main(SAFE.split()) == 0
    assert capsys.readouterr().err == ""


def test_an_error_of_the_operating_system_elsewhere_is_a_fault_still(
    run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("incrowd.cli.bounds._print_safe", lambda _: Path("not there").stat())
    assert run(SAFE).code == 70


def test_what_a_library_prints_past_python_does_not_reach_standard_output() -> None:
    done = python("-c", CHATTER, *SAFE.split(), "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["k"] == 20
    assert done.stderr == "a line of a library\n"


def test_the_module_runs_as_the_command() -> None:
    done = python("-m", "incrowd", *SAFE.split(), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["solved"] == "delta"


def test_a_calculation_loads_no_slow_package() -> None:
    slow = (
        "scipy",
        "dp_accounting",
        "opendp",
        "sqlalchemy",
        "duckdb",
        "pyarrow",
        "pandas",
        "rich",
    )
    code = (
        "import sys; from incrowd.cli.main import main; "
        f"main({[*SAFE.split(), '--json']!r}); print([name for name in {slow!r} if name in sys.modules])"
    )
    assert python("-c", code).stdout.splitlines()[-1] == "[]"


SLOW = {"asyncio", "dp_accounting", "duckdb", "fsspec", "pandas", "scipy", "sklearn", "sqlalchemy", "sqlglot"}
"""What no small release needs; each takes a good part of the time that all the rest takes."""


def test_a_verb_imports_itself_and_the_method_of_its_policy_alone(tmp_path: Path) -> None:
    written(PEOPLE, tmp_path)
    csv.write_csv(people(), tmp_path / "people.csv")
    start = (
        "import atexit, json, sys; from incrowd.cli.entry import start; "
        "atexit.register(lambda: print(json.dumps(sorted(sys.modules)))); start()"
    )
    for line in (
        "plan people.csv --policy policy.yaml",
        "release people.csv --policy policy.yaml --out out --format csv",
        "verify out/certificate.json",
    ):
        done = subprocess.run(
            [sys.executable, "-c", start, *line.split()],
            cwd=tmp_path,
            env=os.environ | {"INCROWD_LIMITS": "off"},  # one process, which knows what it imported
            capture_output=True,
            text=True,
            check=False,
        )
        loaded = json.loads(done.stdout.splitlines()[-1])
        assert done.returncode == 0, done.stderr
        assert SLOW.isdisjoint(loaded)
        assert {name for name in loaded if name.removeprefix("incrowd.cli.") in VERBS} == {
            f"incrowd.cli.{line.split()[0]}"
        }
        assert {place for place in METHODS.values() if place in loaded} == {METHODS["safe"]}


def test_the_help_of_all_verbs_imports_none_and_begins_each_as_its_own_help_does() -> None:
    code = "import sys; from incrowd.cli.main import main; main(['--help']); print(*sys.modules)"
    loaded = python("-c", code).stdout.splitlines()[-1].split()
    assert {"typer", "incrowd.cli.main"} <= set(loaded)
    assert {"numpy", "pyarrow", "pydantic", *(f"incrowd.cli.{verb}" for verb in VERBS)}.isdisjoint(loaded)
    commands = typer.main.get_command(application()).commands  # type: ignore[attr-defined]
    assert {name: (command.help or "").split("\n\n")[0] for name, command in commands.items()} == VERBS


def test_main_takes_the_arguments_of_the_process_by_default(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["incrowd", "--version"])
    assert main() == 0
    assert capsys.readouterr().out == f"incrowd {__version__}\n"


def test_an_interrupt_while_a_command_still_starts_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(entry, "_write_no_core", _Failing(KeyboardInterrupt()))
    with pytest.raises(SystemExit) as ended:
        entry.start()
    assert ended.value.code == 130
    assert capsys.readouterr() == ("", "incrowd: interrupted.\n")
