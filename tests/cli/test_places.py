"""Places outside of policies: --state for everything that is written, `config show`, and `doctor`."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from incrowd.workflows.policy import ledger
from incrowd.workflows.policy.ledger_place import STATE, VARIABLE
from tests.cli.running import Runner

POLICY = {
    "incrowd": 1,
    "dataset": {"name": "people"},
    "columns": {"sex": {"categories": ["f", "m"]}},
    "release": {"method": "safe", "rate": "1/2", "epsilon": 1, "delta": "1e-4"},
    "budget": {"epsilon": 10, "delta": "1/10"},
}
RELEASE = "release declared/people.csv --policy declared/policy.yaml --out"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in (STATE, VARIABLE):
        monkeypatch.setenv(name, "")
    Path("declared").mkdir()
    Path("declared/policy.yaml").write_text(json.dumps(POLICY))
    Path("declared/people.csv").write_text("sex\n" + "f\nm\n" * 300)
    return tmp_path


def names(folder: str) -> set[str]:
    return {path.name for path in Path(folder).rglob("*") if path.is_file()}


def test_everything_that_is_written_goes_where_state_says(
    place: Path, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = Path("declared/.incrowd").absolute()
    monkeypatch.setattr(ledger, "_writable", lambda folder: folder.absolute() != beside)  # as if it were read only
    before = names("declared")
    assert run(f"{RELEASE} out --state kept --json").code == 0
    assert names("declared") == before
    assert {"ledger.sqlite", "ledgers.json", "sources.json", "internal.json"} <= names("kept")
    shown = json.loads(run("ledger show --state kept --json").out)
    assert [dataset["dataset"] for dataset in shown["datasets"]] == ["people"]
    assert run("verify out --policy declared/policy.yaml --state kept").code == 0
    assert names("declared") == before
    assert {path.name for path in place.iterdir()} == {"declared", "kept", "out"}


def test_a_later_run_without_state_begins_no_other_budget(place: Path, run: Runner) -> None:
    assert run(f"{RELEASE} out --state kept --json").code == 0
    assert os.environ[STATE] == ""
    refused = run(f"{RELEASE} out2")
    assert refused.code == 2
    assert "were charged to" in refused.err
    assert str(place / "kept") in refused.err
    assert not Path("out2").exists()


def test_a_folder_that_cannot_be_written_names_the_way_out(
    place: Path, run: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "_writable", lambda _folder: False)
    refused = run(f"{RELEASE} out")
    assert refused.code in (1, 2)
    assert "--state" in refused.err
    assert {path.name for path in place.iterdir()} == {"declared"}


def test_settings_are_shown_with_what_decided_them(place: Path, run: Runner) -> None:
    shown = json.loads(run("config show --policy declared/policy.yaml --json").out)
    assert shown["state"] == {"value": str(place / "declared" / ".incrowd"), "by": "default"}
    assert shown["ledger"] == {"value": f"sqlite:///{place}/declared/.incrowd/ledger.sqlite", "by": "default"}
    os.environ[VARIABLE] = "sqlite:///books/one.sqlite"
    shown = json.loads(run("config show --json").out)
    assert shown["ledger"] == {"value": f"sqlite:///{place}/books/one.sqlite", "by": f"--ledger or {VARIABLE}"}
    shown = json.loads(run("config show --ledger sqlite:///two.sqlite --json").out)
    assert shown["ledger"] == {"value": f"sqlite:///{place}/two.sqlite", "by": f"--ledger or {VARIABLE}"}
    Path("declared/policy.yaml").write_text(json.dumps(POLICY | {"ledger": "sqlite:///own.sqlite"}))
    refused = run("config show --policy declared/policy.yaml")
    assert refused.code == 2
    assert "Nothing was charged" in refused.err


def test_a_doctor_finds_a_machine_ready_and_leaves_nothing(place: Path, run: Runner) -> None:
    found = run("doctor --json")
    assert found.code == 0
    assert json.loads(found.out)["ok"]
    assert {path.name for path in place.iterdir()} == {"declared"}
    assert "Ready." in run("doctor").out


@pytest.mark.usefixtures("place")
def test_a_doctor_says_what_does_not_work(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("incrowd.workflows.doctor.os.urandom", lambda size: b"\x55" * size)
    found = run("doctor --json")
    assert found.code == 1
    bad = [finding["about"] for finding in json.loads(found.out)["findings"] if finding["good"] is False]
    assert bad == ["random numbers"]


def test_an_option_names_the_ledger_and_is_remembered(place: Path, run: Runner) -> None:
    assert run(f"{RELEASE} out --ledger sqlite:///one.sqlite --json").code == 0
    assert not os.environ.get(VARIABLE)
    assert names(".") >= {"one.sqlite"}
    assert "ledger.sqlite" not in names(".")
    assert json.loads(run("ledger show --ledger sqlite:///one.sqlite --json").out)["datasets"][0]["dataset"] == "people"
    refused = run(f"{RELEASE} out2 --ledger sqlite:///two.sqlite")
    assert refused.code == 2
    assert str(place / "one.sqlite") in refused.err


_CALLS = (
    "open,openat,creat,mkdir,mkdirat,rename,renameat,renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat,truncate"
)
_WRITES = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC")
_PATH = re.compile(r'(?:AT_FDCWD|\d+)<([^>]*)>, "((?:[^"\\]|\\.)*)"|(?:\(|, )"((?:[^"\\]|\\.)*)"')


def touched(trace: str, cwd: Path) -> Iterator[Path]:
    """Yield each path that a traced process, or one that it started, made, wrote, moved or removed."""
    for line in trace.splitlines():
        call = line.partition("(")[0].rpartition(" ")[2]
        if " = -1 " in line or (call.startswith(("open", "creat")) and not _WRITES.search(line)):
            continue
        for folder, below, alone in _PATH.findall(line):
            yield Path(os.path.normpath(Path(folder or cwd) / (below or alone)))


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_the_system_sees_no_other_place_written_than_those_that_are_named(place: Path) -> None:
    environment = os.environ | {"TMPDIR": str(place / "scratch"), "HOME": str(place / "home")}
    for name in ("scratch", "home", "books", "elsewhere"):
        Path(name).mkdir()
    environment |= {STATE: str(place / "elsewhere"), VARIABLE: f"sqlite:///{place}/elsewhere/one.sqlite"}
    named = "--policy declared/policy.yaml --state kept --ledger sqlite:///books/one.sqlite --log steps.log"
    before = {path: path.stat().st_mtime_ns for path in Path("declared").rglob("*")}
    beside = place / "declared" / ".incrowd"
    hidden = (f"{place}/.out.incrowd-", f"{place}/.page.html.incrowd-", f"{beside}/.ledgers.json.")
    for line in (
        f"release declared/people.csv {named} --out out --idempotency-key a",
        f"release declared/people.csv {named} --out out --idempotency-key a",
        f"assess out --against declared/people.csv {named}",
        f"report out --internal --against declared/people.csv {named} --out page.html",
    ):
        command = [sys.executable, "-m", "incrowd", *line.split()]
        traced = ["strace", "-f", "-y", "-qq", "-s", "4096", "-o", "trace", "-e", f"trace={_CALLS}", *command]
        done = subprocess.run(traced, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1), done.stderr
        written = set(touched(Path("trace").read_text(errors="replace"), place))
        assert written, "nothing was traced"
        below = (place / "kept", place / "books", place / "out", place / "scratch", Path("/dev"), Path("/proc"))
        alone = {place / "steps.log", place / "page.html", beside, beside / "ledgers.json"}
        elsewhere = {
            path
            for path in written - alone
            if not any(path.is_relative_to(folder) for folder in below) and not str(path).startswith(hidden)
            if path.parent.name != "__pycache__"  # compiled code of the program, as Python itself keeps it
        }
        assert elsewhere == set(), line
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert names("declared") == {"policy.yaml", "people.csv", "ledgers.json"}  # which remembers the other ledger
    assert list(Path("scratch").iterdir()) == list(Path("home").iterdir()) == list(Path("elsewhere").iterdir()) == []
    assert {"one.sqlite", "sources.json"} <= names("books")  # fingerprints belong to a ledger
    assert {"ledgers.json", "internal.json"} <= names("kept")
