"""Mutations: scripted changes of certificates of every method, and the level at which `verify` shows each.

`python -m tests.contract.mutating --count 5000` prints a table.  A mutation removes, doubles, swaps, reverses, empties
or exchanges parts anywhere in a certificate, or changes a number or a text, one to three times over; the id is made to
fit, and where steps are changed, in a second one, guarantee and claims follow from them.  Levels: the certificate by
itself, with its files, with its policy, with its ledger.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from incrowd.errors import IncrowdError
from incrowd.verifier.files import CERTIFICATE, REPORT, file_of, placed
from incrowd.verifier.judge import statement_of
from incrowd.workflows.certificates import certificate_of
from incrowd.workflows.graph.release import release_graph
from incrowd.workflows.local.opening import open_survey, publish_survey
from incrowd.workflows.local.survey_file import SurveyFile
from incrowd.workflows.policy.ledger import find_book
from incrowd.workflows.policy.policy import Policy, load_policy
from incrowd.workflows.query.service import publish_answer
from incrowd.workflows.registry import check_of
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release_to
from incrowd.workflows.report.page import public_report
from incrowd.workflows.verify.verify import References, verify
from tests import graphs
from tests.contract.examples import EXAMPLES, POLICIES, rows
from tests.contract.forging import caught, fitting, refolded
from tests.surveys import MANY, SHUFFLED, TRAVEL, survey_file
from tests.workflows.query.test_service import asking, service_of

LEVELS = ("alone", "files", "policy", "ledger")
NOT_CAUGHT = "nowhere"
_ODD: tuple[Any, ...] = (None, True, -1, 0, 10**30, "", "x", "NaN", "-1", "1e400", [], {}, [[]], {"kind": "x"})


@dataclass(frozen=True)
class Mutation:
    """The places that were changed, what was done there, and the certificate that results."""

    name: str
    plain: dict[str, Any]


@dataclass(frozen=True)
class Subject:
    """A release in a folder, with its policy."""

    name: str
    folder: Path
    policy: Policy | SurveyFile

    @classmethod
    def of(cls, method: str, way: str, folder: Path) -> Subject:
        """Release by an example of the contract suite, of graphs, of surveys, or publish an answer."""
        makers: dict[str, Callable[[str, Path], Policy | SurveyFile]]
        makers = {"graph": _graph, "survey": _survey, "query": _answer}
        make = makers.get(method)
        policy = _table(method, way, folder) if make is None else make(way, folder)
        return cls(f"{method}, {way}", folder / "out", policy)

    @property
    def plain(self) -> dict[str, Any]:
        return dict(json.loads((self.folder / CERTIFICATE).read_text(encoding="utf-8")))


SURVEYS = {"local": TRAVEL, "shuffled": SHUFFLED, "many questions": MANY}
ANSWERS = {
    "groups": "SELECT sex, COUNT(*) AS n, SUM(age) AS s, MEDIAN(age) AS m, MODE(sex) AS c FROM people GROUP BY sex",
    "one number": "SELECT AVG(age) AS a FROM people",
}
OTHERS = (
    *(("graph", name) for name in graphs.EXAMPLES),
    *(("survey", name) for name in SURVEYS),
    *(("query", name) for name in ANSWERS),
)
"""Releases of other families than those of one table."""


def _table(method: str, way: str, folder: Path) -> Policy:
    file = folder / "policy.yaml"
    file.write_text(json.dumps(POLICIES[method][way], default=str), encoding="utf-8")
    policy = load_policy(file)
    release_to(rows(), policy, Destination(folder / "out", "csv"))
    return policy


def _graph(name: str, folder: Path) -> Policy:
    unit, release = graphs.EXAMPLES[name]
    graphs.graph_files(folder, graphs.example_graph(name))
    policy = load_policy(graphs.graph_policy(folder, release, unit))
    release_graph(policy, Destination(folder / "out", "csv"))
    return policy


def _survey(name: str, folder: Path) -> SurveyFile:
    opened = open_survey(survey_file(SURVEYS[name], folder))
    publish_survey(opened, folder / "out")
    return opened.file


def _answer(name: str, folder: Path) -> Policy:
    with service_of(folder) as service:
        answered = service.ask(asking(ANSWERS[name], "2"))
        publish_answer(answered, service.budgets.ledger, Destination(folder / "out", "csv"))
        return service.planner.policies[0]


def mutations(plain: dict[str, Any], chance: random.Random) -> Iterator[Mutation]:
    """Yield mutations without end, each another certificate than the honest one."""
    while True:
        changed, names = copy.deepcopy(plain), []
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            path = chance.choice(list(_paths(changed)))
            names.append(f"{'/'.join(map(str, path))} {_mutate(changed, path, chance)}")
        if (fitted := _fitted(changed)) != plain:
            yield Mutation("; ".join(names), fitted)
            if changed.get("steps") != plain["steps"] and (again := _refolded(changed)) not in (None, fitted):
                yield Mutation("; ".join(names) + ", with guarantee and claims of these steps", again)


def _paths(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        if (*path, key)[0] not in ("certificate", "signature"):
            yield (*path, key)
            yield from _paths(part, (*path, key))


def _mutate(whole: dict[str, Any], path: tuple[str | int, ...], chance: random.Random) -> str:
    """Change one place, and return what was done."""
    inner: Any = whole
    for step in path[:-1]:
        inner = inner[step]
    key, value = path[-1], inner[path[-1]]
    kinds: list[tuple[str, Callable[[], Any]]] = [("exchanged", lambda: chance.choice(_ODD))]
    if isinstance(value, list) and value:
        kinds += [
            ("reversed", lambda: value[::-1]),
            ("emptied", list),
            ("without its first", lambda: value[1:]),
            ("doubled", lambda: value * 2),
            ("shuffled", lambda: chance.sample(value, len(value))),
        ]
    elif isinstance(value, dict) and value:
        gone = chance.choice(list(value))
        kinds += [("without a key", lambda: {k: v for k, v in value.items() if k != gone}), ("emptied", dict)]
    elif isinstance(value, str):
        kinds += [("changed", lambda: _text(value, chance))] * 3
    elif isinstance(value, int | float) and not isinstance(value, bool):
        kinds += [("changed", lambda: value * 2 + 1), ("changed", lambda: value // 2), ("changed", lambda: -value)]
    if isinstance(inner, dict) and len(inner) > 1:
        other = chance.choice([name for name in inner if name != key])
        kinds.append(("taken from a neighbor", lambda: copy.deepcopy(inner[other])))
    what, change = chance.choice(kinds)
    inner[key] = change()
    return what


def _text(value: str, chance: random.Random) -> str:
    numerator, slash, denominator = value.partition("/")
    if numerator.lstrip("-").isdigit() and (not slash or denominator.isdigit()):
        number = max(0, int(numerator) + chance.choice((-1, 1, int(numerator))))
        return f"{number}/{denominator}" if slash else str(number)
    return chance.choice((f"{value}x", value[::-1], "audited: by the national statistics office", value.upper()))


def _fitted(plain: dict[str, Any]) -> dict[str, Any]:
    """Return the certificate with the id of its content, where it has one."""
    try:
        return fitting(plain)
    except (KeyError, TypeError, ValueError, AttributeError, IncrowdError):
        return plain


def _refolded(plain: dict[str, Any]) -> dict[str, Any] | None:
    """Return the certificate with the guarantee and claims that its steps give; None if they give none."""
    try:
        return refolded(plain)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, IncrowdError):
        return None


def changed_parts(honest: dict[str, Any], plain: dict[str, Any]) -> set[str]:
    """Return the parts of a certificate that a mutation changed, and which keys of the evidence."""
    parts = {name for name in honest if plain.get(name) != honest[name]}
    if "evidence" in parts and isinstance(plain.get("evidence"), dict):
        old, new = honest["evidence"], plain["evidence"]
        names = {f"evidence/{name}" for name in {*old, *new} if old.get(name) != new.get(name)}
        return parts - {"evidence"} | names
    return parts


def shown_at(subject: Subject, mutation: Mutation, scratch: Path) -> str:
    """Return the first level at which a mutation is shown; whatever `verify` raises but a refusal is a fault."""
    if caught(mutation.plain) is not None:
        return "alone"
    if not (scratch / "copy").exists():
        shutil.copytree(subject.folder, scratch / "copy")
    _write(mutation.plain, scratch / "copy")
    if _fails(scratch / "copy"):
        return "files"
    if _fails(scratch / "copy", policy=subject.policy):
        return "policy"
    return "ledger" if _fails(scratch / "copy", ledger=find_book(subject.policy)) else NOT_CAUGHT


def _write(plain: dict[str, Any], folder: Path) -> None:
    """Write a certificate into a folder as a forger would: with the report that it has, and the hash of that."""
    try:
        certificate = certificate_of(plain)
        output = check_of(certificate.method.name).reopen(statement_of(certificate), placed(certificate, folder, None))
        (folder / REPORT).write_text(public_report(certificate, output), encoding="utf-8")
        new = file_of(folder / REPORT)
        report = {"name": new.name, "sha256": new.sha256, "bytes": new.bytes}
        plain = {**plain, "outputs": [report if file["name"] == REPORT else file for file in plain["outputs"]]}
    except Exception:  # noqa: BLE001 - a forger who cannot make the report leaves it as it is
        pass
    (folder / CERTIFICATE).write_text(json.dumps(plain), encoding="utf-8")


def _fails(path: Path, **held: Any) -> bool:
    references: References = held  # type: ignore[assignment]  # the same keys, by name
    try:
        return not verify(path, **references).passed
    except IncrowdError:
        return True


def main() -> None:
    """Print for each release how many mutations were shown at which level."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    examples = [example for example in (*EXAMPLES, *OTHERS) if options.only in example[0]]
    number = -(-options.count // len(examples))
    survivors: Counter[str] = Counter()
    print(f"{'release':50}" + "".join(f"{level:>9}" for level in (*LEVELS, NOT_CAUGHT)))
    for method, way in examples:
        with tempfile.TemporaryDirectory() as folder:
            subject = Subject.of(method, way, Path(folder))
            chance, levels = random.Random(f"{options.seed} {method} {way}"), Counter[str]()
            for _, mutation in zip(range(number), mutations(subject.plain, chance), strict=False):
                try:
                    level = shown_at(subject, mutation, Path(folder))
                except Exception as error:
                    raise AssertionError(f"{subject.name}: {mutation.name}") from error
                levels[level] += 1
                if level in ("ledger", NOT_CAUGHT):
                    survivors[f"{level}: {', '.join(sorted(changed_parts(subject.plain, mutation.plain)))}"] += 1
            print(f"{subject.name:50}" + "".join(f"{levels[level]:9}" for level in (*LEVELS, NOT_CAUGHT)), flush=True)
    for name, number in survivors.most_common():
        print(f"{number:6} {name}")


if __name__ == "__main__":
    main()
