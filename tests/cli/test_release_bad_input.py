"""Bad input is one clear message: what is wrong and where, never a value, no charge, nothing half-written."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.csv
import pytest

from incrowd.accounting.ledger.ledger import Ledger
from tests.cli.running import Outcome, Runner
from tests.policies import PEOPLE, changed, people, written

SECRET = "Zarathustra"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pyarrow.csv.write_csv(people(), tmp_path / "people.csv")
    written(PEOPLE, tmp_path)
    return tmp_path


def lines(folder: Path) -> list[str]:
    return (folder / "people.csv").read_text().splitlines()


def rewrite(folder: Path, content: str | bytes) -> None:
    (folder / "people.csv").write_bytes(content.encode() if isinstance(content, str) else content)


def charges(folder: Path) -> int:
    file = folder / ".incrowd" / "ledger.sqlite"
    if not file.exists():
        return 0
    return sum(entry.kind == "charge" for entry in Ledger.open(f"sqlite:///{file}").entries())


def refused(folder: Path, done: Outcome, code: int, said: str) -> None:
    """The command failed as told, said why in one message, showed no value, spent nothing and left nothing."""
    assert done.code == code, done.err
    assert said in done.err
    assert done.err.startswith("incrowd: ")
    assert done.out == "" or done.out.startswith("Columns as they will be published\n")
    assert SECRET not in done.out + done.err
    assert "Traceback" not in done.err
    assert not (folder / "out").exists()
    assert not [path for path in folder.rglob("*") if ".incrowd-" in path.name]
    assert charges(folder) == 0


def semicolons(folder: Path) -> None:
    written(changed(PEOPLE, source={"path": "people.csv", "delimiter": ";"}), folder)


def ragged(folder: Path) -> None:
    found = lines(folder)
    found[10] = f'"F","41","{SECRET}","more"'
    found[20] = '"F","41"'
    rewrite(folder, "\n".join(found))


def unquoted(folder: Path) -> None:
    found = lines(folder)
    found[10] = f'"F","41","{SECRET}'
    rewrite(folder, "\n".join(found))


def latin(folder: Path) -> None:
    found = lines(folder)
    found[7] = f'"F","41","{SECRET} été"'
    written(changed(PEOPLE, source={"path": "people.csv", "encoding": "utf-8"}), folder)
    rewrite(folder, "\n".join(found).encode("latin-1"))


def unreadable_number(folder: Path) -> None:
    found = lines(folder)
    found[3] = f'"F","{SECRET}","02139"'
    rewrite(folder, "\n".join(found))


def renamed(folder: Path) -> None:
    found = lines(folder)
    rewrite(folder, "\n".join(['"sex","age","zipp"', *found[1:]]))


def missing(folder: Path) -> None:
    rewrite(folder, "\n".join(line.rsplit(",", 1)[0] for line in lines(folder)))


def headless(folder: Path) -> None:
    rewrite(folder, "\n".join([f'"F","41","{SECRET}"', *lines(folder)[1:]]))


def empty(folder: Path) -> None:
    rewrite(folder, "")


def twice_the_same_column(folder: Path) -> None:
    rewrite(folder, "\n".join(['"sex","age","age"', *lines(folder)[1:]]))


def no_source(folder: Path) -> None:
    (folder / "people.csv").unlink()


def damaged_parquet(folder: Path) -> None:
    (folder / "people.csv").write_bytes(b"PAR1" + b"\x00" * 40 + b"PAR1")


def reversed_bounds(folder: Path) -> None:
    written(changed(PEOPLE, columns__age__bounds=[99, 0]), folder)


def unknown_method(folder: Path) -> None:
    written(changed(PEOPLE, release__method="sfae"), folder)


def no_yaml(folder: Path) -> None:
    (folder / "policy.yaml").write_text("incrowd: 1\ncolumns: [unclosed\n")


def duplicate_key(folder: Path) -> None:
    (folder / "policy.yaml").write_text("incrowd: 1\nincrowd: 1\n")


def other_version(folder: Path) -> None:
    written(changed(PEOPLE, incrowd=7), folder)


def infeasible(folder: Path) -> None:
    written(changed(PEOPLE, release__k=5, release__epsilon=None, release__delta="1e-6"), folder)


def free_text(folder: Path) -> None:
    written(changed(PEOPLE, release__levels={"age": 2}), folder)


def drafted(folder: Path) -> None:
    written(changed(PEOPLE, columns__sex__derived="rows"), folder)


def unsampled(folder: Path) -> None:
    written(changed(PEOPLE, release__k=5, release__rate=1, release__epsilon=None, release__delta=None), folder)


def too_little_budget(folder: Path) -> None:
    written(changed(PEOPLE, budget={"epsilon": "0.1", "delta": "1e-4"}), folder)


def consent(folder: Path) -> None:
    written(changed(PEOPLE, purpose="research"), folder)


def level_too_high(folder: Path) -> None:
    written(changed(PEOPLE, release__levels={"age": 9, "zip": 1}), folder)


def ledger_elsewhere(folder: Path) -> None:
    written(changed(PEOPLE, ledger="mongodb://somewhere"), folder)


def ledger_damaged(folder: Path) -> None:
    (folder / ".incrowd").mkdir()
    (folder / ".incrowd" / "other.sqlite").write_bytes(b"this is no database" * 100)
    written(changed(PEOPLE, ledger="sqlite:///.incrowd/other.sqlite"), folder)


@pytest.mark.parametrize(
    ("spoil", "code", "said"),
    [
        (semicolons, 2, "a single column with a comma in its name: is that the delimiter"),
        (ragged, 2, "line 11"),
        (unquoted, 2, "line 11"),
        (latin, 2, "line 8"),
        (unreadable_number, 2, "column age: 1 cell is not a whole number, in line 4; expected such as 42"),
        (renamed, 2, "there is no column zip. Did you mean zipp?"),
        (missing, 2, "there is no column zip"),
        (headless, 2, "does its first line name the columns?"),
        (empty, 2, "empty"),
        (twice_the_same_column, 2, "columns 2 and 3 have the same name"),
        (no_source, 2, "does not exist"),
        (damaged_parquet, 2, "people.csv"),
        (reversed_bounds, 2, "bounds run from low to high, not from 99 to 0: swap them"),
        (unknown_method, 2, "the method 'sfae' is unknown; available: safe, scheme, "),
        (no_yaml, 2, "this is not YAML: line 3"),
        (duplicate_key, 2, "line 2: the key 'incrowd' occurs twice"),
        (other_version, 2, "must start with 'incrowd: 1'"),
        (infeasible, 2, "is below rate ** k"),
        (free_text, 2, "'zip' would be released as free text"),
        (drafted, 1, "derived: rows"),
        (unsampled, 1, "this release has no epsilon"),
        (too_little_budget, 1, "of the budget of 0.1 remains"),
        (consent, 1, "'purpose' requires consent"),
        (level_too_high, 2, "'age' has the levels 0"),
        (ledger_elsewhere, 2, "ledger"),
        (ledger_damaged, 2, "ledger"),
    ],
    ids=lambda value: value.__name__ if callable(value) else None,
)
def test_one_clear_message_and_nothing_is_spent(
    run: Runner, folder: Path, spoil: Callable[[Path], None], code: int, said: str
) -> None:
    spoil(folder)
    refused(folder, run("release people.csv --policy policy.yaml --out out"), code, said)


def test_with_json_the_message_is_one_object(run: Runner, folder: Path) -> None:
    unreadable_number(folder)
    done = run("release people.csv --policy policy.yaml --out out --json")
    told = json.loads(done.err)
    assert told["kind"] == "SourceInvalid"
    assert "line 4" in told["error"]
    assert done.out == ""


@pytest.mark.parametrize("command", ["release people.csv --out out", "release people.csv --policy policy.yaml"])
def test_what_must_be_told_is_asked_for(run: Runner, folder: Path, command: str) -> None:
    refused(folder, run(command), 2, "Missing option")


def test_a_file_without_rows_is_a_valid_empty_release(run: Runner, folder: Path) -> None:
    rewrite(folder, lines(folder)[0] + "\n")
    done = run("release people.csv --policy policy.yaml --out out")
    assert done.code == 0
    assert "no rows: all suppressed" in " ".join(done.out.split())


def test_a_folder_that_is_not_empty_is_left_alone(run: Runner, folder: Path) -> None:
    (folder / "out").mkdir()
    (folder / "out" / "mine.txt").write_text("mine")
    done = run("release people.csv --policy policy.yaml --out out")
    assert done.code == 2
    assert "is not empty" in done.err
    assert charges(folder) == 0
    assert [path.name for path in (folder / "out").iterdir()] == ["mine.txt"]


def test_a_file_where_the_folder_should_be_is_left_alone(run: Runner, folder: Path) -> None:
    done = run("release people.csv --policy policy.yaml --out people.csv")
    assert done.code == 2
    assert "is a file; a release is a folder" in done.err
    assert charges(folder) == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may read and write everything")
def test_places_without_rights_are_named(run: Runner, folder: Path) -> None:
    (folder / "people.csv").chmod(0)
    refused(folder, run("release people.csv --policy policy.yaml --out out"), 2, "Permission denied")
    (folder / "people.csv").chmod(0o600)
    (folder / "locked").mkdir(mode=0o500)
    refused(folder, run("release people.csv --policy policy.yaml --out locked/out"), 2, "cannot be written to")


def test_a_source_that_is_a_stream_is_refused(run: Runner, folder: Path) -> None:
    os.mkfifo(folder / "pipe.csv")
    refused(folder, run("release pipe.csv --policy policy.yaml --out out"), 2, "is a stream or device")


def test_an_address_that_nobody_answers_is_refused(run: Runner, folder: Path) -> None:
    refused(folder, run("release https://127.0.0.1:1/x.csv --policy policy.yaml --out out"), 2, "cannot be read")


@pytest.mark.long
@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_a_full_disk_is_said_and_nothing_appears(folder: Path, form: str) -> None:
    """The release may write files of a few kilobytes only; the ledger fits, the report does not."""

    def small() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))

    script = (
        "import signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "from incrowd.cli.main import main\n"
        f"sys.exit(main(['release', 'people.csv', '--policy', 'policy.yaml', '--out', 'out', '--format', '{form}']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-B", "-c", script],  # no bytecode: it would be cut off, too
        cwd=folder,
        capture_output=True,
        text=True,
        preexec_fn=small,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("incrowd: ")
    assert "File too large" in done.stderr
    assert "the charge is not refunded: epsilon" in done.stderr
    assert sorted(path.name for path in folder.iterdir()) == [".incrowd", "people.csv", "policy.yaml"]
    assert {path.name for path in (folder / ".incrowd").iterdir()} == {
        ".sources.lock",
        "ledger.sqlite",
        "ledgers.json",
        "sources.json",
    }
    assert charges(folder) == 1
