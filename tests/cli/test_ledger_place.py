"""Every verb finds its ledger in one order: option, environment, policy, default; contradictions are refused."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.csv as pcsv
import pytest
import typer

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.cli.main import application, main
from incrowd.errors import LedgerUnavailable
from incrowd.governance.access_list import AccessList
from tests.cli import hospital
from tests.cli.running import Runner
from tests.consents import FORM, consented, known_people
from tests.graphs import graph_files, graph_policy, karate
from tests.policies import changed
from tests.surveys import TRAVEL

BUDGET = {"epsilon": 50, "delta": "1e-2", "unbounded": "a test"}
INCOMES = {
    "incrowd": 1,
    "dataset": {"name": "incomes"},
    "columns": {"age": {"type": "integer", "bounds": [0, 99]}, "income": {"categories": ["low", "high"]}},
    "release": {"method": "classifier", "target_column": "income", "epsilon": 2, "delta": "1e-6"},
    "budget": BUDGET,
}
WAYS = {
    "incrowd": 1,
    "dataset": {"name": "ways"},
    "columns": {
        "age": {"type": "integer", "bounds": [0, 99], "outside": "bound"},
        "income": {"categories": ["low", "high"]},
    },
    "release": {
        "method": "comparison",
        "epsilon": 2,
        "delta": "1e-6",
        "candidates": {"pairs": {"method": "marginals", "workload": [["age", "income"]]}, "tree": {"method": "tree"}},
    },
    "budget": BUDGET,
}
WARDS = {
    "incrowd": 1,
    "dataset": {"name": "wards"},
    "source": "wards.csv",
    "columns": {"ward": {"categories": ["nord", "süd"]}},
    "queries": {},
    "budget": BUDGET,
}
MONTHS = {
    "incrowd": 1,
    "dataset": {"name": "months", "unit": {"column": "who", "max_rows": 1}},
    "source": "months.csv",
    "columns": {
        "who": {"role": "identifier"},
        "day": {"role": "withheld", "type": "date"},
        "ward": {"categories": ["ost", "west"]},
    },
    "period": {"column": "day", "every": "month", "first": "2025-01", "last": "2025-03"},
    "release": {"method": "private-histogram", "columns": ["ward"], "epsilon": "0.1"},
    "budget": BUDGET,
}
CHARGES = {
    "release": "release --policy policy.yaml --out out2 --force",
    "learn": "learn incomes.csv --policy incomes.yaml --out model",
    "synth compare": "synth compare ways.csv --policy ways.yaml --out ways",
    "query": 'query "SELECT COUNT(*) AS n FROM wards" --policy wards.yaml --epsilon 0.1',
    "graph release": "graph release --policy club.yaml --out club-out2",
    "series run": "series run --policy months.yaml --out months --period 2025-01",
    "local open": "local open --survey survey2.yaml --out opened",
}
"""Verbs that charge a ledger."""
RECORDS = {
    "profile": "profile --policy policy.yaml",
    "check": "check patients.csv --policy policy.yaml",
    "plan": "plan patients.csv --policy policy.yaml",
    "assess": "assess out --policy policy.yaml",
    "attack": "attack out --policy policy.yaml --attack linkage",
    "report": "report out --policy policy.yaml --internal",
    "hierarchy check": "hierarchy check --policy policy.yaml",
    "graph profile": "graph profile --policy club.yaml",
    "graph assess": "graph assess club-out --policy club.yaml",
    "graph attack": "graph attack club-out --policy club.yaml --attack degree",
    "ledger grant": "ledger grant patients --epsilon 1 --why x --policy policy.yaml",
}
"""Verbs that write something else into a ledger: an access to rows, or a grant."""
READS = {
    "verify": "verify out --policy policy.yaml",
    "serve": "serve --policy wards.yaml",
    "collect serve": "collect serve --survey survey.yaml",
    "collect tokens": "collect tokens --survey survey.yaml",
    "collect export": "collect export --survey survey.yaml --out exported.jsonl",
    "local randomize": "local randomize answers.csv --survey survey.yaml --out reports.jsonl",
    "config show": "config show --policy policy.yaml",
    "series plan": "series plan --policy months.yaml",
    "series status": "series status --policy months.yaml",
    "consent preview": "consent preview --policy data/policy.yaml",
    "consent subject": "consent subject p7 --policy data/policy.yaml",
    "series close": "series close --policy months.yaml --why x",  # writes, but must come after the others of its series
}
"""Verbs that read a ledger."""
WITHOUT = frozenset(
    {"coarsen", "doctor", "local estimate", "local plan"}
    | {f"consent {verb}" for verb in ("import", "status", "give", "withdraw", "correct", "receipt", "check")}
)
"""Verbs that take a policy or a survey, and use no ledger."""
NAMED = {
    "ledger show": "",
    "ledger carve": "patients means --rho 0.01 --delta 1e-8",
    "ledger close": "patients --why x",
    "ledger check": "",
    "ledger move": "sqlite:///new.sqlite --why x",
    "ledger renew": "--why x",
    "access grant": "ann --why x",
    "access admit": "ann --why x",
    "access password": "ann --why x",
    "access rotate": "abc --why x",
    "access revoke": "abc --why x",
    "access list": "",
    "access check": "",
}
"""Verbs that are about a ledger and take no policy."""


def furnish(folder: Path, ledger: str | None) -> None:
    """Write policies and surveys of every kind, with their data."""
    own = {} if ledger is None else {"ledger": ledger}
    hospital.patients(folder)
    hospital.policy(folder, budget=BUDGET, **own)
    (folder / "incomes.csv").write_text("age,income\n" + "30,low\n50,high\n" * 300)
    (folder / "ways.csv").write_text("age,income\n" + "41,low\n62,high\n" * 300)
    (folder / "wards.csv").write_text("ward\n" + "nord\nsüd\n" * 100, encoding="utf-8")
    (folder / "months.csv").write_text("who,day,ward\nm1,2025-01-03,ost\nm2,2025-02-03,west\n", encoding="utf-8")
    graph_files(folder, karate())
    club: dict[str, Any] = graph_policy(folder, {"method": "degree-anonymity", "k": 2})
    club.pop("ledger")
    files = {
        "incomes.yaml": INCOMES,
        "ways.yaml": WAYS,
        "wards.yaml": WARDS,
        "months.yaml": MONTHS,
        "club.yaml": club,
        "survey.yaml": TRAVEL,
        "survey2.yaml": TRAVEL | {"name": "again"},
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content | own), encoding="utf-8")
    pcsv.write_csv(known_people(), folder / "people.csv")
    gated = changed(FORM, source="../people.csv")
    gated.pop("ledger", None)
    consented(gated | own, folder)
    (folder / "decisions.csv").write_text("subject,event,purpose,at\np8,give,research,2026-05-01\n")
    (folder / "answers.csv").write_text("travel\nwalk\nbus\n")


def commands() -> Iterator[tuple[str, set[str]]]:
    """Yield every command with the names of its options."""

    def walk(command: Any, words: tuple[str, ...]) -> Iterator[tuple[str, set[str]]]:
        for name, inner in getattr(command, "commands", {}).items():
            yield from walk(inner, (*words, name))
        if not hasattr(command, "commands"):
            yield " ".join(words), {parameter.name for parameter in command.params}

    yield from walk(typer.main.get_command(application()), ())


def test_every_verb_with_a_policy_a_survey_or_a_ledger_is_tested_here() -> None:
    concerned = {name for name, options in commands() if options & {"policy", "survey", "ledger"}}
    assert concerned == {*CHARGES, *RECORDS, *READS, *NAMED, "studio"} | WITHOUT  # test_studio.py has the studio


@dataclass(frozen=True)
class Furnished:
    """A folder with every kind of policy, and two places for ledgers: of its policies, and of the environment."""

    folder: Path
    own: Path
    elsewhere: Path

    def entries(self) -> int:
        return Ledger.open(f"sqlite:///{self.elsewhere}").chain.head().sequence


def prepared(folder: Path, *, names: bool) -> Furnished:
    """Furnish a folder and make the releases that verbs are about, with the ledger of the policies or of no policy."""
    made = Furnished(folder, folder / "own.sqlite", folder / "elsewhere.sqlite")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("INCROWD_LEDGER", "" if names else f"sqlite:///{made.elsewhere}")
        furnish(folder, f"sqlite:///{made.own}" if names else None)
        assert main(["release", "--policy", "policy.yaml", "--out", "out", "--force", "--json"]) == 0
        assert main(["graph", "release", "--policy", "club.yaml", "--out", "club-out", "--json"]) == 0
    return made


@pytest.fixture(scope="module")
def naming(tmp_path_factory: pytest.TempPathFactory) -> Furnished:
    """Policies that name a ledger."""
    return prepared(tmp_path_factory.mktemp("naming"), names=True)


@pytest.fixture(scope="module")
def silent(tmp_path_factory: pytest.TempPathFactory) -> Furnished:
    """Policies that name none, in a folder that was always used with the environment's."""
    return prepared(tmp_path_factory.mktemp("silent"), names=False)


@pytest.mark.parametrize("command", [*CHARGES, *RECORDS, *READS])
def test_an_option_against_the_policy_is_refused_with_both_places(
    run: Runner, naming: Furnished, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(naming.folder)
    monkeypatch.setattr("uvicorn.run", lambda *_arguments, **_more: None)
    before = naming.own.read_bytes()
    outcome = run(f"{(CHARGES | RECORDS | READS)[command]} --ledger sqlite:///{naming.elsewhere}")
    assert outcome.code == 2
    assert str(naming.own) in outcome.err
    assert str(naming.elsewhere) in outcome.err
    assert naming.own.read_bytes() == before
    assert not naming.elsewhere.exists()


@pytest.mark.parametrize("command", [*CHARGES, *RECORDS, *READS])
def test_a_variable_names_the_ledger_where_the_policy_names_none(
    run: Runner, silent: Furnished, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(silent.folder)
    monkeypatch.setenv("INCROWD_LEDGER", "sqlite:///elsewhere.sqlite")
    monkeypatch.setattr("uvicorn.run", lambda *_arguments, **_more: None)
    if command == "serve":
        assert run("access grant ann --why x").code == 0
    before = silent.entries()
    outcome = run((CHARGES | RECORDS | READS)[command])
    assert outcome.code == (1 if command == "check" else 0), outcome.err  # the table has a column of ids
    assert silent.entries() > before or command in READS
    assert list(silent.folder.rglob("ledger.sqlite")) == []


@pytest.mark.parametrize("command", NAMED)
def test_an_option_goes_before_the_variable_and_that_before_the_default(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    def opened(address: str) -> Any:
        raise LedgerUnavailable(f"looked for at {address}!")

    for name in ("open", "create"):
        monkeypatch.setattr(Ledger, name, staticmethod(opened))
        monkeypatch.setattr(AccessList, name, staticmethod(opened))
    monkeypatch.setattr(sys, "stdin", io.StringIO("a long enough one"))
    line = f"{command} {NAMED[command]}"
    assert f"at sqlite:///{tmp_path}/.incrowd/ledger.sqlite!" in run(line).err
    monkeypatch.setenv("INCROWD_LEDGER", "sqlite:///variable.sqlite")
    assert f"at sqlite:///{tmp_path}/variable.sqlite!" in run(line).err
    assert f"at sqlite:///{tmp_path}/option.sqlite!" in run(f"{line} --ledger sqlite:///option.sqlite").err


def test_an_address_with_a_password_is_named_without_it(
    run: Runner, naming: Furnished, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(naming.folder)
    monkeypatch.setenv("INCROWD_LEDGER", "postgresql://ann:hunter2@db.example:5433/privacy?password=hunter2")
    outcome = run(CHARGES["release"])
    assert outcome.code == 2
    assert "postgresql://ann@db.example:5433/privacy" in outcome.err
    assert "hunter2" not in outcome.err


def test_the_same_ledger_named_twice_in_two_ways_is_no_contradiction(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hospital.patients(tmp_path)
    hospital.policy(tmp_path, ledger="sqlite:///books/one.sqlite")
    (tmp_path / "books").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "books")
    monkeypatch.setenv("INCROWD_LEDGER", f"sqlite:///{tmp_path}/link/one.sqlite")
    assert run("release --policy policy.yaml --out out --force").code == 0
    assert (tmp_path / "books" / "one.sqlite").exists()


@pytest.mark.parametrize("first", ["", "sqlite:///elsewhere.sqlite"])
def test_a_second_ledger_for_the_same_policy_is_not_made_in_silence(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    hospital.patients(tmp_path)
    hospital.policy(tmp_path)
    second = "" if first else "sqlite:///elsewhere.sqlite"
    monkeypatch.setenv("INCROWD_LEDGER", first)
    assert run("release --policy policy.yaml --out out --force").code == 0
    monkeypatch.setenv("INCROWD_LEDGER", second)
    outcome = run("release --policy policy.yaml --out second --force")
    assert outcome.code == 2
    assert str(tmp_path / "elsewhere.sqlite") in outcome.err
    assert str(tmp_path / ".incrowd" / "ledger.sqlite") in outcome.err
    assert sum(path.exists() for path in (tmp_path / "elsewhere.sqlite", tmp_path / ".incrowd/ledger.sqlite")) == 1


def test_a_release_of_others_is_not_held_against_the_ledger_of_the_variable(
    run: Runner, silent: Furnished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INCROWD_LEDGER", f"sqlite:///{silent.elsewhere}")
    own = run(f"verify {silent.folder}/out --json").json
    assert [each["verdict"] for each in own["findings"] if each["about"] == "ledger"] == ["passed"]
    Ledger.create(f"sqlite:///{tmp_path}/mine.sqlite")
    monkeypatch.setenv("INCROWD_LEDGER", f"sqlite:///{tmp_path}/mine.sqlite")
    other = run(f"verify {silent.folder}/out --json").json
    assert [each["verdict"] for each in other["findings"] if each["about"] == "ledger"] == ["cannot be known here"]
    assert run(f"verify {silent.folder}/out --ledger sqlite:///{tmp_path}/mine.sqlite").code == 1
