"""Commands: a folder with good and bad files, cases of bad input for every verb, and commands that only compute.

A case is known by its verb and a plain name.  Its last line is the case, those before it must be done first; each case
runs in a copy of the folder.
"""

from __future__ import annotations

import atexit
import json
import shlex
import shutil
import tempfile
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
    "wrong-type.yaml": changed(_GOOD, columns__sex={"type": "integer", "bounds": [0, 9]}, **_apart("typed")),
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
_RELEASE = "release --policy good.yaml --format csv --out"
_QUERY = "query 'SELECT COUNT(*) FROM asked' --policy asked.yaml"
CASES: dict[str, str | tuple[str, ...]] = {
    "no verb": "",
    "an unknown verb": "relase",
    "an unknown option": "plan --policy good.yaml --colour",
    "profile / a table": "profile people.csv",
    "profile / a missing file": "profile nowhere.csv",
    "profile / an empty file": "profile empty.csv",
    "profile / a header alone": "profile header.csv",
    "profile / a line that is too short": "profile ragged.csv",
    "profile / a column twice": "profile double.csv",
    "profile / an unknown encoding": "profile people.csv --encoding klingon",
    "profile / a draft that is there": "profile people.csv --write good.yaml",
    "profile / an unknown goal": "profile people.csv --write new.yaml --for fame",
    "profile / an unknown engine": "profile people.csv --engine abacus",
    "check / classes of one": "check people.csv --quasi sex,age,zip --k 2",
    "check / classes of five": "check people.csv --quasi sex --k 5",
    "check / an unknown column": "check people.csv --quasi town --k 5",
    "check / no criterion": "check people.csv --quasi sex",
    "check / a k that is no number": "check people.csv --quasi sex --k many",
    "check / l without a sensitive column": "check people.csv --quasi sex --l 2",
    "check / a missing file": "check nowhere.csv --quasi sex --k 5",
    "plan / a policy": "plan --policy good.yaml",
    "plan / a missing policy": "plan --policy nowhere.yaml",
    "plan / no policy": "plan",
    "plan / no YAML": "plan --policy no-yaml.yaml",
    "plan / an empty policy": "plan --policy empty.yaml",
    "plan / an unknown key": "plan --policy unknown-key.yaml",
    "plan / an unknown option of the method": "plan --policy unknown-option.yaml",
    "plan / an unknown method": "plan --policy unknown-method.yaml",
    "plan / a level too high": "plan --policy unknown-level.yaml",
    "plan / no release": "plan --policy no-release.yaml",
    "plan / no columns": "plan --policy no-columns.yaml",
    "plan / a rate above one": "plan --policy bad-rate.yaml",
    "plan / a negative k": "plan --policy bad-k.yaml",
    "plan / an epsilon in words": "plan --policy wordy-epsilon.yaml",
    "plan / a newer format": "plan --policy newer-format.yaml",
    "plan / a purpose without consent": "plan --policy ungated.yaml",
    "plan / a person without a column": "plan --policy no-person.yaml",
    "plan / a budget too small": "plan --policy small-budget.yaml",
    "plan / no epsilon": "plan --policy no-epsilon.yaml",
    "plan / probably empty": "plan --policy too-few.yaml",
    "plan / rows of the wrong type": "plan people.csv --policy wrong-type.yaml",
    "plan / minimal levels of a method without a search": "plan people.csv --policy good.yaml --minimal",
    "plan / a paid look at a missing file": "plan nowhere.csv --policy asked.yaml --look 0.1",
    "policy / a policy": "policy check good.yaml",
    "policy / an unknown key": "policy check unknown-key.yaml",
    "policy / a missing file": "policy check nowhere.yaml",
    "policy / its schema": "policy schema",
    "hierarchy / a tree": "hierarchy check letters-tree.csv",
    "hierarchy / a value in two places": "hierarchy check tree.csv letter.csv --column letter",
    "hierarchy / a missing value": "hierarchy check letters-tree.csv letter.csv --column letter",
    "hierarchy / a missing file": "hierarchy check nowhere.csv",
    "hierarchy / an unknown kind": "hierarchy build --column age --kind waves --out new.csv --range 0,99",
    "hierarchy / steps that do not rise": (
        "hierarchy build --column age --kind intervals --steps 9,3 --out n.csv --range 0,99"
    ),
    "release / a policy": f"{_RELEASE} new",
    "release / a folder that is there": f"{_RELEASE} out",
    "release / an unknown format": "release --policy good.yaml --out new --format wav",
    "release / a missing source": "release nowhere.csv --policy good.yaml --out new",
    "release / an empty table": "release header.csv --policy good.yaml --out new",
    "release / an empty table, for its form": "release header.csv --policy form.yaml --out new",
    "release / for its form": "release --policy form.yaml --out new",
    "release / an unknown column": "release --policy unknown-column.yaml --out new",
    "release / rows of the wrong type": "release --policy wrong-type.yaml --out new",
    "release / letters for a number": "release letters.csv --policy too-few.yaml --out new --anyway",
    "release / a line that is too short": "release ragged.csv --policy too-few.yaml --out new --anyway",
    "release / a budget too small": "release --policy small-budget.yaml --out new",
    "release / a budget that is spent": (f"{_RELEASE} second", f"{_RELEASE} third"),
    "release / no epsilon": "release --policy no-epsilon.yaml --out new",
    "release / probably empty": "release --policy too-few.yaml --out new",
    "release / a person with too many rows": "release --policy refused-rows.yaml --out new --anyway",
    "release / another unit": "release --policy replaced.yaml --out new",
    "release / the same sample twice": (
        "release --policy biased.yaml --out one --anyway",
        "release --policy biased.yaml --out two --anyway",
    ),
    "release / a key that is none": f"{_RELEASE} new --sign key.pem",
    "release / a share held out above one": f"{_RELEASE} new --hold-out 120%",
    "release / a policy of a graph": "release --policy graph.yaml --out new",
    "release / a damaged ledger": "release --policy damaged/good.yaml --out new",
    "learn / a method that learns nothing": "learn --policy good.yaml --out new",
    "learn / a folder that is there": "learn --policy learned.yaml --out model",
    "predict / rows": "predict model rows.csv --out said.csv",
    "predict / a missing model": "predict nowhere rows.csv --out said.csv",
    "predict / a release that is no model": "predict out rows.csv --out said.csv",
    "predict / a missing column": "predict model letter.csv --out said.csv",
    "predict / an unknown ending": "predict model rows.csv --out said.doc",
    "export / a release": "export out --to croissant --out croissant.json",
    "export / an unknown format": "export out --to postcard --out new.json",
    "export / a missing release": "export nowhere --to ddi --out new.xml",
    "export / no model for onnx": "export out --to onnx --out new.onnx",
    "export / a file that is there": "export out --to ddi --out people.csv",
    "query / a question": f"{_QUERY} --epsilon 0.1",
    "query / a price": f"{_QUERY} --epsilon 0.1 --price",
    "query / no epsilon": _QUERY,
    "query / an epsilon in words": f"{_QUERY} --epsilon much",
    "query / a negative epsilon": f"{_QUERY} --epsilon -1",
    "query / an epsilon of zero": f"{_QUERY} --epsilon 0",
    "query / a budget too small": f"{_QUERY} --epsilon 9",
    "query / an unknown table": "query 'SELECT COUNT(*) FROM nowhere' --policy asked.yaml --epsilon 0.1",
    "query / an unknown column": "query 'SELECT SUM(town) FROM asked' --policy asked.yaml --epsilon 0.1",
    "query / no SELECT": "query 'DROP TABLE asked' --policy asked.yaml --epsilon 0.1",
    "query / rows themselves": "query 'SELECT * FROM asked' --policy asked.yaml --epsilon 0.1",
    "query / groups without a delta": (
        "query 'SELECT zip, COUNT(*) FROM asked GROUP BY zip' --policy asked.yaml --epsilon 1"
    ),
    "query / broken SQL": "query 'SELECT COUNT( FROM' --policy asked.yaml --epsilon 0.1",
    "query / a policy without queries": "query 'SELECT COUNT(*) FROM people' --policy good.yaml --epsilon 0.1",
    "query / a negative budget": f"{_QUERY.replace('asked.yaml', 'negative-epsilon.yaml')} --epsilon 0.1",
    "query / one of a batch unknown": "query --policy asked.yaml --batch questions.sql --epsilon 0.1",
    "query / an unknown account": f"{_QUERY} --account means --rho 0.1",
    "query / a classical answer beside private ones": f"{_QUERY} --classical size-control=3",
    "query / an unknown classical answer": f"{_QUERY} --classical abacus=3",
    "coarsen / a release": "coarsen out --policy good.yaml --out new --levels age=3",
    "coarsen / a lower level": "coarsen out --policy good.yaml --out new --levels age=1",
    "coarsen / an unknown column": "coarsen out --policy good.yaml --out new --columns town",
    "coarsen / nothing to change": "coarsen out --policy good.yaml --out new",
    "coarsen / another policy": "coarsen out --policy replaced.yaml --out new --levels age=3",
    "coarsen / a missing release": "coarsen nowhere --policy good.yaml --out new --levels age=3",
    "coarsen / a forged release": "coarsen forged --policy good.yaml --out new --levels age=3",
    "coarsen / a model": "coarsen model --policy learned.yaml --out new --columns sex",
    "verify / a release": "verify out",
    "verify / with its ledger and policy": "verify out --ledger sqlite:///.incrowd/ledger.sqlite --policy good.yaml",
    "verify / a forged certificate": "verify forged",
    "verify / an unreadable certificate": "verify unreadable",
    "verify / a changed file": "verify changed",
    "verify / no certificate": "verify damaged",
    "verify / a missing folder": "verify nowhere",
    "verify / another policy": "verify out --policy replaced.yaml",
    "verify / a missing ledger": "verify out --ledger sqlite:///nowhere.sqlite",
    "verify / a key that is none": "verify out --public-key key.pem",
    "assess / a release": "assess out --policy good.yaml",
    "assess / a missing release": "assess nowhere --policy good.yaml",
    "assess / another policy": "assess out --policy replaced.yaml",
    "attack / no data": "attack out",
    "attack / an unknown attack": "attack out --against people.csv --attack hammer",
    "attack / a missing release": "attack nowhere --against people.csv",
    "attack / an unknown column": "attack --original people.csv --published people.csv --known town",
    "estimate / a release": "estimate randomized",
    "estimate / of another method": "estimate out",
    "estimate / a missing release": "estimate nowhere",
    "report / a release": "report out --out page.html",
    "report / a missing release": "report nowhere",
    "report / a forged release": "report forged --out page.html",
    "report / internal without data": "report out --internal --out page.html",
    "rule / a rule": "rule 'counts of 7 or fewer become 0'",
    "rule / no rule": "rule",
    "rule / words without a rule": "rule 'be nice'",
    "rule / a negative minimum": "rule --minimum -3",
    "rule / a rate above one": "rule --minimum 5 --rate 2",
    "serve / no policy": "serve",
    "serve / a missing policy": "serve --policy nowhere.yaml",
    "serve / no access list": "serve --policy good.yaml",
    "serve / a port in words": "serve --policy asked.yaml --port high",
    "serve / no workers": "serve --policy asked.yaml --workers 0",
    "serve / a certificate without its key": "serve --policy asked.yaml --tls-certificate key.pem",
    "studio / a missing folder": "studio nowhere --no-open",
    "studio / a port in words": "studio --no-open --port high",
    "local / a plan": "local plan --domain 10 --epsilon 1 --people 100",
    "local / a plan for nobody": "local plan --domain 10 --epsilon 1 --people 0",
    "local / a plan with a bad epsilon": "local plan --domain 10 --epsilon 0 --people 100",
    "local / an unknown mechanism": "local open --survey unknown-mechanism.yaml",
    "local / a survey without epsilon": "local open --survey survey-without-epsilon.yaml",
    "local / an unknown key": "local open --survey survey-with-a-key.yaml",
    "local / a missing survey": "local open --survey nowhere.yaml",
    "local / answers": "local randomize answers.csv --survey survey.yaml --out new.jsonl",
    "local / answers that are none": "local randomize other-answers.csv --survey survey.yaml --out new.jsonl",
    "local / answers twice": (
        "local randomize answers.csv --survey survey.yaml --out new.jsonl",
        "local randomize answers.csv --survey survey.yaml --out more.jsonl",
    ),
    "local / answers without the question": "local randomize letter.csv --survey survey.yaml --out new.jsonl",
    "local / reports of another survey": "local estimate reports.jsonl --survey survey.yaml",
    "local / reports that are none": "local estimate no-reports.jsonl --survey survey.yaml",
    "local / a confidence of two": "local estimate reports.jsonl --survey survey.yaml --confidence 2",
    "collect / a missing survey": "collect serve --survey nowhere.yaml",
    "collect / no tokens": "collect tokens --survey survey.yaml --count 0",
    "collect / tokens of a missing survey": "collect tokens --survey nowhere.yaml",
    "graph / a release": "graph release --policy graph.yaml --out new",
    "graph / a profile": "graph profile --policy graph.yaml",
    "graph / a policy of a table": "graph release --policy good.yaml --out new",
    "graph / an edge to nobody": "graph release --policy graph-of-strangers.yaml --out new",
    "graph / a method of tables": "graph release --policy graph-without-method.yaml --out new",
    "graph / a missing release": "graph assess nowhere --policy graph.yaml",
    "graph / an attack on a table": "graph attack out --policy graph.yaml",
    "bounds / nothing": "bounds",
    "bounds / too few numbers": "bounds safe --k 20",
    "bounds / too many numbers": "bounds safe --k 20 --rate 0.1 --epsilon 1 --delta 1e-6",
    "bounds / a rate above one": "bounds safe --k 20 --rate 2 --epsilon 1",
    "bounds / a negative epsilon": "bounds safe --k 20 --rate 0.1 --epsilon -1",
    "bounds / a delta that cannot be reached": "bounds safe --k 2 --rate 0.5 --delta 1e-9",
    "bounds / no releases": "bounds compose --delta 1e-6",
    "bounds / a missing certificate": "bounds compose --promise nowhere.json --delta 1e-6",
    "bounds / a sample that costs more": "bounds amplify --rate 0.1 --epsilon 1 --sampled-epsilon 2",
    "ledger / its state": "ledger show",
    "ledger / a missing ledger": "ledger show --ledger sqlite:///nowhere.sqlite",
    "ledger / an address that is none": "ledger show --ledger here",
    "ledger / a damaged ledger": "ledger check --ledger sqlite:///damaged/.incrowd/ledger.sqlite",
    "ledger / all is well": "ledger check",
    "ledger / a grant to nobody": "ledger grant nowhere --epsilon 1 --why test --who ann",
    "ledger / a negative grant": "ledger grant people --epsilon -1 --why test --who ann",
    "ledger / a grant without a reason": "ledger grant people --epsilon 1 --who ann",
    "ledger / an account beyond the budget": "ledger carve people means --rho 9 --delta 1e-6",
    "ledger / a closed dataset": ("ledger close people --why done --who ann", f"{_RELEASE} new"),
    "access / an unknown role": "access grant ann --why test --who bob --role king",
    "access / too many days": "access grant ann --why test --who bob --role analyst --days 999",
    "access / an unknown token": (
        "access grant ann --why test --who bob --role analyst",
        "access revoke 0123 --why test --who bob",
    ),
    "access / no reason": "access grant ann --who bob",
    "access / no list": "access check --ledger sqlite:///nowhere.sqlite",
    "consent / its state": "consent status --policy gated/data/policy.yaml",
    "consent / a policy without a purpose": "consent status --policy good.yaml",
    "consent / a decision": "consent give p1 --policy gated/data/policy.yaml",
    "consent / an end before its beginning": (
        "consent give p1 --policy gated/data/policy.yaml --valid-from 2030-01-01 --valid-to 2029-01-01"
    ),
    "consent / a time in words": "consent give p1 --policy gated/data/policy.yaml --valid-to soon",
    "consent / a file without decisions": "consent import decisions.csv --policy gated/data/policy.yaml",
    "consent / a missing file": "consent import nowhere.csv --policy gated/data/policy.yaml",
    "consent / an unknown format": "consent import decisions.csv --policy gated/data/policy.yaml --format stone",
    "consent / a registry that is whole": "consent check --policy gated/data/policy.yaml",
    "consent / a certificate without a gate": "consent check --policy gated/data/policy.yaml --against out",
}
"""Lines of commands by the case; the first word of a name is the verb."""
CALCULATED = {
    "bounds / safe, delta": "bounds safe --k 20 --rate 0.1 --epsilon 1",
    "bounds / safe, epsilon": "bounds safe --k 20 --rate 0.1 --delta 1e-6",
    "bounds / safe, k": "bounds safe --rate 1/2 --epsilon 1 --delta 1e-4",
    "bounds / safe, rate": "bounds safe --k 12 --epsilon 1 --delta 1e-4",
    "bounds / safe, replaced": "bounds safe --k 40 --rate 0.1 --delta 1e-6 --replace",
    "bounds / safe, people with three rows": "bounds safe --k 40 --rate 0.1 --delta 1e-6 --rows-per-person 3",
    "bounds / crowd": "bounds crowd --k 20 --rate 0.1 --crowd-epsilon 0.5 --delta 1e-6",
    "bounds / crowd, biased sample": (
        "bounds crowd --k 40 --rate 0.05 --high-rate 0.1 --irregular 2 --max-rate 1 --delta 1e-6"
    ),
    "bounds / amplify, epsilon of the sample": "bounds amplify --rate 0.1 --epsilon 1",
    "bounds / amplify, epsilon on the sample": "bounds amplify --rate 0.1 --sampled-epsilon 0.5",
    "bounds / amplify, rate": "bounds amplify --epsilon 1 --sampled-epsilon 0.5",
    "bounds / compose, Laplace": "bounds compose --pure 0.5 --laplace scale=10 --delta 1e-6",
    "bounds / compose, Gaussian": "bounds compose --gaussian scale=10 --gaussian scale=20 --rho 0.1 --delta 1e-6",
    "bounds / compose, suppression": "bounds compose --safe k=20,rate=0.1 --approximate 1,1e-6 --delta 1e-5",
    "bounds / compose, crowd": "bounds compose --crowd k=20,rate=0.1,epsilon=0.1 --epsilon 1",
    "rule / in words": "rule 'counts of 7 or fewer become 0, then round to 5'",
    "rule / behind a sample": "rule --minimum 11 --rate 0.1",
    "check / classes": "check people.csv --quasi sex,age --k 2",
    "check / sensitive column": (
        "check people.csv --quasi age --sensitive sex --l 2 --entropy-l 1.5 --t 0.3 --recursive 9,2 --beta 2"
    ),
    "check / risk": "check people.csv --quasi sex,zip --average-risk 0.2 --unique 0.1,10000",
    "plan / other methods": "plan --policy expected.yaml --compare",
    "local / plan": "local plan --domain 100 --epsilon 1 --people 100000 --delta 1e-6",
    "graph / profile": "graph profile --policy graph.yaml",
    "profile / table": "profile people.csv",
}
"""Commands that only compute: their numbers depend on nothing but their words and files."""


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
