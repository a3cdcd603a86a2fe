"""Makes the golden files of version 1: run once at commit 29e1c32, never again; kept to show how they were made.

    python -m tests.golden.version_1.make SCRATCH

works in a folder and copies what is kept beside this file.  `recorded.json` in that folder held further cases for
`refusals.json`: what the tests of that commit saw refused.
"""

from __future__ import annotations

import gzip
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.csv as pc

from incrowd.core.rounding import exact
from incrowd.core.table import DEFAULTS, SourceOptions
from incrowd.engines.readers.sources import Source, open_source
from incrowd.engines.sql.duckdb import warehouse
from incrowd.errors import IncrowdError
from incrowd.queries.classical.protections import protection_of
from incrowd.queries.terms import Terms
from incrowd.workflows.asking.asking import Asking, AskingTogether
from incrowd.workflows.asking.classical import ask_classical
from incrowd.workflows.asking.publish import publish_answer
from incrowd.workflows.coarsen.method import Coarser, coarsen
from incrowd.workflows.desk import Desk, open_desk
from incrowd.workflows.policy import Policy, load_policy
from incrowd.workflows.release.publish import Destination, release_to
from tests.contract import examples
from tests.golden.version_1 import adapter, hospital, inputs, questions, refusals, trials
from tests.golden.version_1.files import (
    FOLDER,
    FOLDERS,
    INPUTS,
    certificate,
    index,
    read_policy,
    unpack_ledgers,
    write_golden,
)
from tests.golden.version_1.verdicts import verdict
from tests.policies import written
from tests.queries.language.hospital import CATALOG
from tests.released import key_pair

CERTIFIED = ("guarantee", "claims", "chain")
"""What a certificate holds of what is said before any row."""
REPORTED = (
    "safe-k-solved",
    "blended-histogram-k-solved",
    "points-box",
    "full-domain-demands-l",
    "slicing-k-solved",
    "answer-count-by-ward",
    "coarser-safe",
)  # fmt: skip
"""Folders that keep their report: one of each page, for reports are large."""
ALSO = (
    "safe-dates-and-cuts", "safe-groups-and-redaction", "safe-hierarchy-file", "safe-rows-dropped",
    "safe-missing-filled", "safe-sensitive-and-plain", "safe-period-and-version", "safe-values-themselves",
    "safe-weights-of-people", "scheme-replaced-weights", "scheme-within-levels", "suppressed-histogram-open-level",
    "blended-histogram-rounded", "blended-histogram-no-sample-flagged", "private-histogram-rounded",
    "private-histogram-within-an-error", "points-box-noisy-uniform", "points-days", "full-domain-suppressed",
    "full-domain-nothing-left", "full-domain-drafted", "full-domain-ordered-t-of-numbers",
    "full-domain-unique-by-pitman", "full-domain-unique-by-snb", "full-domain-unique-by-dankar",
    "local-recoding-drafted", "cell-suppression-drafted", "mondrian-means", "mondrian-relaxed-means",
    "mondrian-ordered-categories", "mondrian-days-and-trees", "itemsets-sensitive-beside", "partition-sensitive-beside",
    "slicing-three-tables", "slicing-replaced",
)  # fmt: skip
"""Folders besides the first of each shape: their steps have the same keys and other values that are read again."""
COARSER: tuple[tuple[str, str, str, Coarser], ...] = (
    ("coarser-safe", "safe-values-themselves", "safe-values-themselves", Coarser({"age": 3}, ("sex", "age"))),
    ("coarser-safe-twice", "coarser-safe", "safe-values-themselves", Coarser({}, ("sex",))),
    ("coarser-safe-k-solved", "safe-k-solved", "safe-k-solved", Coarser({"zip": 2})),
    ("coarser-no-sample", "safe-no-sample", "safe-no-sample", Coarser({"zip": 2}, ("sex", "zip"))),
    ("coarser-pseudonyms", "safe-pseudonyms", "safe-pseudonyms", Coarser({}, ("sex",))),
    ("coarser-scheme", "scheme-k-solved", "scheme-k-solved", Coarser({}, ("sex", "age"))),
    ("coarser-suppressed", "suppressed-histogram-k-solved", "suppressed-histogram-k-solved", Coarser({"zip": 2})),
    ("coarser-blended", "blended-histogram-k-solved", "blended-histogram-k-solved", Coarser({}, ("sex",))),
    ("coarser-laplace", "private-histogram-laplace", "private-histogram-laplace", Coarser({"age": 3})),
    ("coarser-gaussian", "private-histogram-gaussian", "private-histogram-gaussian", Coarser({}, ("age",))),
)
"""Coarser tables: name, parent, policy, what is wanted."""


def write_inputs(folder: Path) -> None:
    """Write all policies and rows."""
    folder.mkdir()
    tables = {"rows": examples.rows(), "wide": inputs.wide(), "few": inputs.few(), "population": inputs.population()}
    for name, table in (tables | questions.tables()).items():
        pc.write_csv(table, folder / f"{name}.csv")
    inputs.write_beside(folder)
    for name, _, plain in inputs.policies():
        written(plain, folder, f"{name}.yaml")
    for name, plain in questions.POLICIES.items():
        written(plain, folder, f"{name}.yaml")
    written(questions.TEACHING, folder, "teaching.yaml")


def text_table(path: Path) -> pa.Table:
    """Return the rows of a file as text, as they are read."""
    names = pc.open_csv(path).schema.names
    options = pc.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True)
    return pc.read_csv(path, convert_options=options)


def shape(policy: Policy) -> tuple[Any, ...]:
    """Return what a folder is kept for: which steps with which keys, which claims in which words, which loss."""
    method, schema = policy.method, policy.schema
    promise = method.guarantee(schema).to_json()
    claims = tuple(
        (claim.kind, sorted(claim.parameters), claim.theorem, claim.not_protected, claim.preconditions)
        for claim in method.claims(schema)
    )
    steps = tuple((step["step"], _keys(step)) for step in method.chain(schema))
    return (method.name, _keys(promise), promise["because"], repr(claims), steps)


def _keys(value: Any) -> Any:
    if isinstance(value, Mapping):
        return tuple((key, _keys(inner)) for key, inner in sorted(value.items()))
    if isinstance(value, list | tuple):
        return tuple(sorted({_keys(inner) for inner in value}, key=repr))
    return type(value).__name__


def make_releases(scratch: Path, key: Path) -> Iterator[dict[str, Any]]:
    """Release by the first policy of each shape, and by some others; yield what the index says."""
    shapes, place = set[tuple[Any, ...]](), scratch / "inputs"
    for name, data, _ in inputs.policies():
        policy = load_policy(place / f"{name}.yaml")
        found = shape(policy)
        if found in shapes and name not in ALSO:
            continue
        shapes.add(found)
        count = len(shapes)
        form = "parquet" if count % 9 == 5 else "tsv" if count % 9 == 8 else "csv"
        signed = count % 12 == 1
        out = scratch / "folders" / name
        release_to(text_table(place / data), policy, Destination(out, form, key if signed else None))
        told = {"folder": name, "kind": "release", "method": policy.method.name, "policy": name, "data": data}
        yield told | {"ledger": policy.ledger.removeprefix("sqlite:///"), "signed": signed}


def make_coarser(scratch: Path) -> Iterator[dict[str, Any]]:
    """Make coarser tables of some releases."""
    for name, parent, policy, wanted in COARSER:
        loaded = load_policy(scratch / "inputs" / f"{policy}.yaml")
        coarsen(scratch / "folders" / parent, loaded, wanted, scratch / "folders" / name)
        asked = {"levels": dict(wanted.levels), "columns": list(wanted.columns)}
        told = {"folder": name, "kind": "coarser", "parent": parent, "policy": policy, "wanted": asked}
        yield told | {"ledger": loaded.ledger.removeprefix("sqlite:///"), "signed": False}


@contextmanager
def desk_of(folder: Path, names: tuple[str, ...]) -> Iterator[Desk]:
    """Open a desk whose ledger does not learn where the files are on this machine."""

    def opened(source: object, options: SourceOptions = DEFAULTS) -> Source:
        return replace(open_source(source, options), address=None)

    policies = [load_policy(folder / f"{name}.yaml") for name in names]
    with patch("incrowd.workflows.asking.place.open_source", opened), open_desk(policies) as desk:
        yield desk


def make_answers(scratch: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Answer all questions; yield what the index says of each, and what was replied."""
    for asked in questions.ASKED:
        with desk_of(scratch / "inputs", asked.desk) as desk:
            if asked.account == "means" and not any(entry.kind == "carve" for entry in desk.ledger.entries()):
                desk.ledger.carve("staff", "means", "1/10", "1e-7")
            reply = _answer(desk, asked, scratch / "folders" / f"answer-{asked.name}")
        told = {"folder": f"answer-{asked.name}", "kind": "answer", "policies": list(asked.desk)}
        yield told | {"ledger": questions.LEDGER, "signed": False}, reply


def _answer(desk: Desk, asked: questions.Asked, out: Path) -> dict[str, Any]:
    terms = Terms(**{name: exact(value) for name, value in asked.terms.items()})
    given = {"name": asked.name, "desk": list(asked.desk), "terms": asked.terms}
    if isinstance(asked.sql, str):
        asking = Asking(asked.sql, terms, asked.analyst, asked.account)
        answered = desk.ask(asking)
        publish_answer(answered, out, asked.form)
        who = {"analyst": asked.analyst, "account": asked.account}
        return given | {"sql": asked.sql, **who, **_plain(answered.to_json())}
    together = desk.ask_batch(AskingTogether(asked.sql, terms))
    out.mkdir()
    (out / "certificate.json").write_text(together.certificate.to_text(), encoding="utf-8")
    return given | {"batch": list(asked.sql), **_plain(together.to_json())}


def _plain(reply: dict[str, Any]) -> dict[str, Any]:
    """Return a reply with the id in place of its certificate, which lies in the folder."""
    return {**reply, "certificate": reply["certificate"]["id"]}


def make_classical(scratch: Path) -> Iterator[dict[str, Any]]:
    """Answer in classical ways; a refusal is a reply as well."""
    with desk_of(scratch / "inputs", ("teaching",)) as desk:
        for sql, how in questions.CLASSICAL:
            try:
                reply: dict[str, Any] = {"reply": ask_classical(desk, sql, protection_of(how)).to_json()}
            except IncrowdError as error:
                reply = {"refusal": [type(error).__name__, str(error)]}
            yield {"sql": sql, "how": how, **reply}


def make_folders(scratch: Path) -> None:
    """Make inputs, folders, ledgers, the index and the replies."""
    write_inputs(scratch / "inputs")
    keys = key_pair(scratch)
    listed = [*make_releases(scratch, keys.private), *make_coarser(scratch)]
    replies = []
    for told, reply in make_answers(scratch):
        listed.append(told)
        replies.append(reply)
    classical = list(make_classical(scratch))
    (scratch / "ledgers").mkdir()
    for store in (scratch / "inputs").glob("*.sqlite"):
        packed = gzip.compress(store.read_bytes(), mtime=0)
        (scratch / "ledgers" / f"{store.name}.gz").write_bytes(packed)
        store.unlink()
    shutil.rmtree(scratch / "inputs" / ".incrowd")
    for folder in (scratch / "folders").iterdir():
        if folder.name not in REPORTED:
            (folder / "report.html").unlink(missing_ok=True)
    lines = ",\n".join(json.dumps(each, ensure_ascii=False) for each in listed)
    (scratch / "index.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    write_golden("replies", {"answers": replies, "classical": classical}, scratch)


def make_plans() -> dict[str, Any]:
    """Say before any row what each policy promises, and release on fixed coins.

    What stands in the certificate of a folder is not written down a second time.
    """
    folders = {each["policy"] for each in index() if each["kind"] == "release"}
    found: dict[str, Any] = {}
    for name, data, _ in inputs.policies():
        policy = read_policy(name)
        said = adapter.told(policy)
        private = said["price"]["epsilon"] != "Infinity"
        said["outcome"] = adapter.outcome(policy, open_source(INPUTS / data), private=private)
        if "robust" in name or policy.method.name not in {each["method"] for each in found.values()}:
            said |= adapter.alternatives(policy)
        if name in folders:
            held = certificate(name)
            said = {key: value for key, value in said.items() if key not in CERTIFIED or value != held[key]}
        found[name] = {"data": data, "method": policy.method.name, **said}
    return found


def make_questions() -> dict[str, Any]:
    """Say before any row what questions promise and cost, and answer some of them on fixed coins."""
    found = {}
    with warehouse(hospital.stored()) as rows:
        for number, (sqls, terms, answered) in enumerate(hospital.asked()):
            said = (
                adapter.asked(sqls[0], terms, CATALOG)
                if len(sqls) == 1
                else adapter.asked_together(sqls, terms, CATALOG)
            )
            answers = adapter.answers(sqls, terms, CATALOG, rows) if answered else None
            found[str(number)] = {"sqls": list(sqls), "terms": terms, **said, "answers": answers}
    return found


def make_verdicts(scratch: Path) -> dict[str, Any]:
    """Verify every folder, with all that belongs to it and alone."""
    unpack_ledgers(scratch, {entry["ledger"] for entry in index()})
    found = {}
    for entry in index():
        found[entry["folder"]] = {"whole": verdict(entry, scratch), "alone": verdict(entry)}
    return found


def make_refusals(recorded: list[Any]) -> dict[str, Any]:
    """Write down what is said to every case that is refused: those by hand, then those a recorder saw in the tests.

    The recorder's cases are pairs of a kind and what was given.  Of cases with the same answer, the first is kept.
    """
    found: dict[str, Any] = {}
    known = set[tuple[str, ...]]()
    for kind, given in (*refusals.cases(), *recorded):
        with tempfile.TemporaryDirectory() as folder:
            error = trials.refusal(kind, given, Path(folder))
        if error is not None and (kind, *error) not in known:
            known.add((kind, *error))
            found[str(len(found))] = {"kind": kind, "given": given, "error": error}
    return found


def main(scratch: Path) -> None:
    """Make everything in a scratch folder and copy it here; folders that are here already stay as they are."""
    if not FOLDERS.exists():
        make_folders(scratch)
        shutil.copy(scratch / "key.pub", FOLDER / "key.pub")
        for name in ("inputs", "folders", "ledgers"):
            shutil.copytree(scratch / name, FOLDER / name)
        for name in ("index.json", "replies.json"):
            shutil.copy(scratch / name, FOLDER / name)
    write_golden("plans", make_plans())
    write_golden("questions", make_questions())
    write_golden("verdicts", make_verdicts(scratch))
    write_golden("refusals", make_refusals(json.loads((scratch / "recorded.json").read_text(encoding="utf-8"))))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
