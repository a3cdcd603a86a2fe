"""Commands: a folder with good and bad files, and what runs lines of commands in copies of it."""

from __future__ import annotations

import atexit
import json
import shlex
import shutil
import tempfile
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.csv

from tests import graphs, surveys
from tests.consents import GATED, known_people
from tests.contract.examples import POLICIES, rows
from tests.facts import adapters
from tests.facts.plain import facts, number
from tests.policies import PEOPLE, changed, people


def _apart(name: str) -> dict[str, Any]:
    """Return the changes that make a dataset of its own of the same rows."""
    return {"dataset__name": name, "dataset__separate": "a test"}


_PAID = {"epsilon": 2, "delta": "1e-3"}
_GOOD = changed(PEOPLE, source="people.csv", budget=_PAID)
_ASKED = changed(_GOOD, release=None, queries={}, **_apart("asked"))
_LEARNED = changed(POLICIES["classifier"]["pure"], source="rows.csv", budget={"epsilon": 9}, **_apart("learned"))
_RANDOM = changed(POLICIES["pram"]["one column, invariant"], source="rows.csv", **_apart("randomized"))
_FORM = {"method": "full-domain", "k": 5, "lowest": {"zip": 1}}
_BIASED = {"low": "0.05", "high": "0.1", "irregular": 2}
_GATED = changed(GATED, source="known.csv")
POLICY_FILES: dict[str, dict[str, Any]] = {
    "good.yaml": _GOOD,
    "expected.yaml": changed(
        _GOOD, dataset__rows=600, columns__zip=None, release__levels={"age": 2}, **_apart("expected")
    ),
    "asked.yaml": _ASKED,
    "learned.yaml": _LEARNED,
    "randomized.yaml": _RANDOM,
    "unknown-key.yaml": changed(_GOOD, colums={"sex": {}}),
    "unknown-option.yaml": changed(_GOOD, release__kk=5),
    "unknown-method.yaml": changed(_GOOD, release__method="saef"),
    "unknown-column.yaml": changed(_GOOD, columns__town={"categories": ["A", "B"]}),
    "unknown-level.yaml": changed(_GOOD, release__levels={"age": 9}),
    "no-release.yaml": changed(_GOOD, release=None),
    "no-columns.yaml": changed(_GOOD, columns=None),
    "bad-rate.yaml": changed(_GOOD, release__rate="3/2"),
    "bad-k.yaml": changed(_GOOD, release__k=-5),
    "negative-epsilon.yaml": changed(_ASKED, budget={"epsilon": -1}),
    "wordy-epsilon.yaml": changed(_GOOD, budget={"epsilon": "much"}),
    "newer-format.yaml": changed(_GOOD, incrowd=99),
    "small-budget.yaml": changed(_GOOD, budget={"epsilon": "0.1", "delta": "1e-3"}, **_apart("small")),
    "no-epsilon.yaml": changed(_GOOD, release=_FORM),
    "form.yaml": changed(_GOOD, release=_FORM, budget={"unbounded": "a test"}, **_apart("form")),
    "wrong-type.yaml": changed(
        _GOOD, columns__sex={"type": "integer", "bounds": [0, 9], "outside": "bound"}, **_apart("typed")
    ),
    "too-few.yaml": changed(_GOOD, dataset__rows=20, **_apart("few"), release__levels={"zip": 1}),
    "biased.yaml": changed(
        _GOOD, release__rate=None, release__robust=_BIASED, budget={"epsilon": 90, "delta": "1e-2"}, **_apart("biased")
    ),
    "refused-rows.yaml": changed(
        _GOOD, source="twice.csv", columns__id={"role": "identifier"}, dataset__unit={"column": "id", "more": "refuse"}
    ),
    "replaced.yaml": changed(_GOOD, dataset__unit={"adjacency": "replace-one"}),
    "no-person.yaml": changed(_GOOD, dataset__unit={"kind": "person"}),
    "ungated.yaml": changed(_GOOD, purpose="research"),
    "graph.yaml": changed(graphs.graph_policy(Path(), {"method": "degree-sequence", "epsilon": 1}), ledger=None),
    "graph-of-strangers.yaml": changed(
        graphs.graph_policy(Path(), {"method": "degree-sequence", "epsilon": 1}),
        ledger=None,
        edges__source="strange.csv",
    ),
    "graph-without-method.yaml": changed(graphs.graph_policy(Path(), {"method": "safe", "k": 5}), ledger=None),
    "survey.yaml": surveys.TRAVEL,
    "unknown-mechanism.yaml": changed(surveys.TRAVEL, questions__travel__mechanism="coin"),
    "survey-without-epsilon.yaml": changed(surveys.TRAVEL, epsilon=None),
    "survey-with-a-key.yaml": changed(surveys.TRAVEL, question={}),
}
"""Policies and surveys by the names of their files."""
TEXT_FILES = {
    "no-yaml.yaml": "incrowd: [1\ncolumns:\n",
    "empty.yaml": "",
    "empty.csv": "",
    "header.csv": "sex,age,zip\n",
    "ragged.csv": "sex,age,zip\nF,20,02139\nF,20\n",
    "letters.csv": "sex,age,zip\nF,forty,02139\n",
    "twice.csv": "id,sex,age,zip\n" + "1,F,20,02139\n" * 3,
    "double.csv": "sex,sex,age,zip\nF,F,20,02139\n",
    "answers.csv": "travel\n" + "walk\nbus\n" * 10,
    "other-answers.csv": "travel\nrocket\n",
    "reports.jsonl": '{"survey": "x", "question": "travel", "report": 1}\n',
    "no-reports.jsonl": "walk\n",
    "tree.csv": "a;x;*\nb;x;*\nb;y;*\n",
    "letters-tree.csv": "a;x;*\nb;x;*\nc;y;*\n",
    "letter.csv": "letter\na\nb\nd\n",
    "strange.csv": "source,target\n1,2\n1,nobody\n",
    "questions.sql": "SELECT COUNT(*) FROM asked; SELECT COUNT(*) FROM nowhere",
    "decisions.csv": "who,what\np1,give\n",
    "key.pem": "no key\n",
}


def of_case(lines: str | tuple[str, ...]) -> dict[str, Any]:
    """Return the exit code and the class of error of a case, and the exit codes of what came before it."""
    _copied()
    done = [adapters.of_command(shlex.split(line)) for line in ([lines] if isinstance(lines, str) else lines)]
    earlier = [each["exit"] for each in done[:-1]]
    return {**done[-1], **({"before": earlier} if earlier else {})}


def of_numbers(words: str) -> dict[str, Any]:
    """Return the numbers that a command prints."""
    _copied()
    printed = adapters.printed_by([*shlex.split(words), "--json"])
    return {"exit": number(printed.code), "printed": facts(json.loads(printed.text))}


def of_verdicts(words: str) -> dict[str, Any]:
    """Return how many findings of a verification have each verdict, and what those are about that failed."""
    _copied()
    printed = adapters.printed_by([*shlex.split(words), "--json"])
    findings = json.loads(printed.text)["findings"]
    return {
        "exit": number(printed.code),
        "verdicts": {name: number(count) for name, count in Counter(each["verdict"] for each in findings).items()},
        "failed": sorted(each["about"] for each in findings if each["verdict"] == "failed"),
    }


def _copied() -> None:
    """Fill the current folder with a copy of the folder of files."""
    shutil.copytree(_folder(), Path(), dirs_exist_ok=True, symlinks=True)


@cache
def _folder() -> Path:
    """Make the folder of files once; it lives as long as this process."""
    held = tempfile.TemporaryDirectory(prefix="facts-files-")
    atexit.register(held.cleanup)
    folder = Path(held.name)
    for name, mapping in POLICY_FILES.items():
        (folder / name).write_text(json.dumps(mapping, indent=1), encoding="utf-8")
    for name, text in TEXT_FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    graphs.graph_files(folder, graphs.karate())
    for name, table in {"people.csv": people(), "rows.csv": rows(), "known.csv": known_people()}.items():
        pyarrow.csv.write_csv(table, folder / name)
    adapters.fill_folder(folder, _GATED)
    _tamper(folder)
    return folder


def _tamper(folder: Path) -> None:
    """Add a release with another epsilon, one with a line less, and a ledger that is cut off."""
    for name in ("forged", "unreadable", "changed"):
        shutil.copytree(folder / "out", folder / name)
    adapters.forge(folder / "forged")
    certificate = folder / "unreadable" / "certificate.json"
    certificate.write_text(certificate.read_text(encoding="utf-8").replace('"claims"', '"wishes"'), encoding="utf-8")
    data = folder / "changed" / "data.csv"
    data.write_text("".join(data.read_text(encoding="utf-8").splitlines(keepends=True)[:-1]), encoding="utf-8")
    (folder / "damaged" / ".incrowd").mkdir(parents=True)
    shutil.copy(folder / "good.yaml", folder / "damaged")
    shutil.copy(folder / "people.csv", folder / "damaged")
    ledger = (folder / ".incrowd" / "ledger.sqlite").read_bytes()
    (folder / "damaged" / ".incrowd" / "ledger.sqlite").write_bytes(ledger[: len(ledger) // 2])
