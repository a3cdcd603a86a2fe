"""At 80 columns no line is wider, and no word is split: what is printed holds the same words as on a wide terminal."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs import commands
from incrowd.cli.main import main
from incrowd.cli.output import block, lines_of, width_of
from tests.cli.hospital import patients, policy
from tests.cli.running import Runner

BOX = re.compile("[─│╭╮╰╯]")
SQL = "SELECT sex, ill, COUNT(*) AS n, AVG(age) AS mean, MEDIAN(age) AS middle FROM patients GROUP BY sex, ill"
ASKED = f'query "{SQL}" --policy policy.yaml --epsilon 0.5'
LINES = [
    "profile patients.csv",
    "check --policy policy.yaml",
    "check patients.csv --quasi age,sex --k 5 --l 2 --sensitive ill",
    "plan --policy policy.yaml",
    "plan --policy syntactic.yaml --minimal --frontier",
    "policy check policy.yaml",
    "hierarchy check ill.csv",
    "hierarchy check ill.csv patients.csv --column sex",
    "verify out",
    "verify out --verbose",
    "assess out --policy policy.yaml",
    "report out --out page.html",
    "ledger show --entries",
    "ledger check --against out/certificate.json",
    ASKED,
    f"{ASKED} --verbose",
    f"{ASKED} --price",
    "bounds safe --k 20 --rate 0.1 --epsilon 0.5",
    "bounds crowd --k 20 --rate 0.1",
    "bounds amplify --rate 0.1 --epsilon 1",
    "bounds compose --safe k=20,rate=0.1x3 --delta 1e-6",
    "rule --hide-up-to 7 --small-counts zero --no-totals --round 5",
    "rule --hide-below 5 --zeros shown --totals",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table, a policy, a release of it, and a question that was asked."""
    made = tmp_path_factory.mktemp("wide")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(made)
        patients(made, 400)
        full = {"method": "full-domain", "criteria": {"k": 5}}
        policy(made, release=full, budget={"unbounded": "invented"}).rename(made / "syntactic.yaml")
        policy(made, queries={}, budget={"epsilon": 9, "delta": "1e-3"})
        assert main(["release", "--policy", "policy.yaml", "--out", "out", "--force"]) == 0
        assert main(["query", SQL, "--policy", "policy.yaml", "--epsilon", "0.5"]) == 0
    return made


def printed(run: Runner, monkeypatch: pytest.MonkeyPatch, line: str, columns: int) -> str:
    monkeypatch.setenv("COLUMNS", str(columns))
    Path("page.html").unlink(missing_ok=True)
    done = run(line)
    assert done.code in (0, 1) or done.err
    return done.out


@pytest.mark.parametrize("line", LINES)
def test_no_line_is_too_wide_and_no_word_is_split(
    run: Runner, folder: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.chdir(folder)
    narrow, wide = (printed(run, monkeypatch, line, columns) for columns in (80, 4000))
    assert [text for text in narrow.splitlines() if width_of(text) > 80] == []
    assert [text for text in narrow.splitlines() if text != text.rstrip()] == []
    assert {*narrow.split()} ^ {*wide.split()} <= {"look"}, "a look at the rows is an entry of the ledger"


def test_help_fits(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    for path, command in commands.commands().items():
        shown = printed(run, monkeypatch, f"{path.removeprefix('incrowd')} --help", 80)
        assert [text for text in shown.splitlines() if width_of(text) > 80] == []
        told = [command.help, *(parameter.help for parameter in command.params)]
        assert {word for text in told for word in text.split()} <= {*BOX.sub(" ", shown).split()}, path


def test_a_word_that_is_wider_than_the_terminal_stays_whole() -> None:
    word = "x" * 100
    assert lines_of(f"see {word} there", 80) == ["see", word, "there"]
    assert [first + rest for first, rest in block([("page", word)], 80)] == [" page", f"   {word}"]


def test_a_table_that_is_too_wide_becomes_records() -> None:
    rows = [("a" * 30, "b" * 30, "c" * 30)]
    found = [first + rest for first, rest in block(rows, 80, ("one", "two", "three"))]
    assert found == [f" one     {'a' * 30}", f" two     {'b' * 30}", f" three   {'c' * 30}"]


def test_an_error_is_wrapped_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch, run: Runner) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run("policy check no-such-folder/" + "a long name " * 9).err.count("\n") == 1


def test_the_demo_ends_with_rows_that_were_released(tmp_path: Path) -> None:
    text = (commands.PAGE.parents[2] / "demo").read_text(encoding="utf-8")
    script = text.split("<<'EOF'\n")[1].split("EOF\n")[0]
    assert "data.parquet" in script
    patients(tmp_path, 400)
    policy(tmp_path)
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(tmp_path)
        assert main(["release", "--policy", "policy.yaml", "--out", "out", "--force"]) == 0
    done = subprocess.run(
        [sys.executable, "-", "out"], input=script, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "rows that were released" in done.stdout
