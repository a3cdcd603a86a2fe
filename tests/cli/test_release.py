from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from tests.cli.running import Runner
from tests.policies import PEOPLE, changed, people, tuples, written
from tests.released import key_pair


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with people.csv and policy.yaml."""
    pyarrow.csv.write_csv(people(), tmp_path / "people.csv")
    written(PEOPLE, tmp_path)
    return tmp_path


def test_a_file_and_a_policy_become_a_folder_that_may_be_published(run: Runner, folder: Path) -> None:
    done = run("release people.csv --policy policy.yaml --out out")
    assert done.code == 0
    assert {path.name for path in (folder / "out").iterdir()} == {"data.parquet", "certificate.json", "report.html"}
    for told in ("out/data.parquet", "out/certificate.json", "out/report.html", ".incrowd/internal", "Read the report"):
        assert told.replace(" ", "") in "".join(done.out.split())  # lines end where the folder's name lets them
    found = tuples(pq.read_table(folder / "out" / "data.parquet"))
    assert min(found.values()) >= 21
    assert run("verify out --ledger sqlite:///.incrowd/ledger.sqlite").code == 0


@pytest.mark.parametrize("form", ["csv", "tsv"])
def test_the_output_can_be_text(run: Runner, folder: Path, form: str) -> None:
    assert run(f"release people.csv --policy policy.yaml --out out --format {form} --no-spreadsheet").code == 0
    with (folder / "out" / f"data.{form}").open(newline="") as file:
        found = Counter(map(tuple, csv.reader(file, delimiter="," if form == "csv" else "\t")))
    assert found.pop(("sex", "age", "zip")) == 1
    assert min(found.values()) >= 21


def test_json_is_one_object_with_the_certificate(run: Runner, folder: Path) -> None:
    done = run("release people.csv --policy policy.yaml --out out --json")
    assert done.json["folder"] == "out"
    assert done.json["certificate"] == json.loads((folder / "out" / "certificate.json").read_text())
    assert done.err == ""


def test_spending_is_shown_rounded_up_and_what_is_left_rounded_down(run: Runner, folder: Path) -> None:
    written(changed(PEOPLE, budget={"epsilon": 2, "delta": "1e-3"}), folder)
    done = run("release people.csv --policy policy.yaml --out out")
    spent = json.loads((folder / "out" / "certificate.json").read_text())["accounting"]["spent"]["epsilon"]
    assert spent.startswith("0.94139715")
    assert "epsilon 0.941398, delta 0.0001" in done.out
    assert "epsilon 1.05860, delta 0.0009" in done.out or "epsilon 1.0586, delta 0.0009" in done.out


def test_a_second_release_is_refused_until_the_owner_grants_more(run: Runner, folder: Path) -> None:
    assert run("release people.csv --policy policy.yaml --out one").code == 0
    again = run("release people.csv --policy policy.yaml --out two")
    assert again.code == 1
    assert "remains" in again.err
    assert "incrowd ledger grant" in again.err
    assert not (folder / "two").exists()
    granted = run(
        "ledger grant people --epsilon 1 --delta 1e-4 --why 'the yearly table' --who board "
        "--ledger sqlite:///.incrowd/ledger.sqlite"
    )
    assert granted.code == 0, granted.err
    assert run("release people.csv --policy policy.yaml --out two").code == 0


def test_an_empty_release_says_so(run: Runner, folder: Path) -> None:
    pyarrow.csv.write_csv(people(5), folder / "few.csv")
    done = run("release few.csv --policy policy.yaml --out out")
    assert done.code == 0
    assert "no rows: all suppressed" in " ".join(done.out.split())
    assert pq.read_table(folder / "out" / "data.parquet").num_rows == 0
    assert run("verify out").code == 0


def test_a_signature_is_made_and_checked(run: Runner, folder: Path) -> None:
    key_pair(folder)
    assert run("release people.csv --policy policy.yaml --out out --sign key.pem").code == 0
    assert run("verify out --public-key key.pub").code == 0
    assert "✓  signature" in run("verify out --public-key key.pub --verbose").out


def test_the_data_of_the_policy_is_read_from_the_policys_folder(
    run: Runner, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(changed(PEOPLE, source="people.csv"), folder)
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    assert run("release --policy ../policy.yaml --out out").code == 0
    assert (folder / ".incrowd" / "ledger.sqlite").exists()
    assert [path.name for path in (folder / "elsewhere").iterdir()] == ["out"]


@pytest.mark.long
@pytest.mark.long
def test_ctrl_c_leaves_nothing_half_written(folder: Path) -> None:
    """A release that waits while it writes is interrupted: nothing appears, what was staged is gone."""
    script = (
        "import sys, time\n"
        "from incrowd.cli.main import main\n"
        "from incrowd.workflows.release import deliver\n"
        "write = deliver.write_table\n"
        "def slowly(*told):\n"
        "    write(*told)\n"
        "    print('writing', file=sys.stderr, flush=True)\n"
        "    time.sleep(300)\n"
        "deliver.write_table = slowly\n"
        "sys.exit(main(['release', 'people.csv', '--policy', 'policy.yaml', '--out', 'out']))\n"
    )
    running = subprocess.Popen(
        [sys.executable, "-c", script], cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert running.stderr is not None
    assert running.stderr.readline() == "writing\n"
    os.kill(running.pid, signal.SIGINT)
    _, errors = running.communicate(timeout=300)
    assert running.returncode == 130
    assert errors.startswith("incrowd: interrupted. Nothing was released; the charge is not refunded: epsilon 0.94")
    assert errors.count("\n") == 1
    assert sorted(path.name for path in folder.iterdir()) == [".incrowd", "people.csv", "policy.yaml"]
    kept = {".sources.lock", "ledger.sqlite", "ledgers.json", "sources.json"}
    assert {path.name for path in (folder / ".incrowd").iterdir()} == kept


@pytest.mark.long
def test_ctrl_c_while_rows_are_checked_costs_nothing(folder: Path) -> None:
    script = (
        "import sys, time\n"
        "from incrowd.cli.main import main\n"
        "from incrowd.engines.local import engine\n"
        "def slowly(*_, **__):\n"
        "    print('checking', file=sys.stderr, flush=True)\n"
        "    time.sleep(300)\n"
        "engine.validate = slowly\n"
        "sys.exit(main(['release', 'people.csv', '--policy', 'policy.yaml', '--out', 'out']))\n"
    )
    running = subprocess.Popen([sys.executable, "-c", script], cwd=folder, stderr=subprocess.PIPE, text=True)
    assert running.stderr is not None
    assert running.stderr.readline() == "checking\n"
    os.kill(running.pid, signal.SIGINT)
    running.communicate(timeout=300)
    assert running.returncode == 130
    assert sorted(path.name for path in folder.iterdir()) == [".incrowd", "people.csv", "policy.yaml"]
    kept = sorted(path.name for path in (folder / ".incrowd").iterdir())
    assert kept == [".sources.lock", "sources.json"]  # a key, and no marks
    assert json.loads((folder / ".incrowd" / "sources.json").read_text())["ledgers"] == {}


def test_text_that_could_be_a_formula_is_harmless_by_default(run: Runner, folder: Path) -> None:
    """The policy alone decides: ZIP codes are any text, whatever the rows hold."""
    assert run("release people.csv --policy policy.yaml --out out --format csv").code == 0
    assert sorted(file.name for file in (folder / "out").glob("data*")) == ["data.spreadsheet.csv"]


def test_a_file_for_spreadsheets_is_asked_for_by_an_option(run: Runner, folder: Path) -> None:
    line = "release people.csv --policy policy.yaml --spreadsheet"
    refused = run(f"{line} --out parquet")
    assert refused.code == 2
    assert "--format csv" in refused.err
    assert run(f"{line} --format csv --out out").code == 0
    assert (folder / "out" / "data.spreadsheet.csv").is_file()
    assert run("verify out").code == 0
