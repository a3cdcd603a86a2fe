"""The model as a file: read again it draws the same, forgeries are found, and what is declared public is said so."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import incrowd
from incrowd.errors import InvalidParameter
from incrowd.methods.synthesis.marginals.synthetic_model import SyntheticModel
from incrowd.verifier.files import file_of
from incrowd.verifier.judge import statement_of
from incrowd.workflows.certificates import read_certificate
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.registry import check_of
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release_to
from incrowd.workflows.verify.verify import verify
from tests.policies import PEOPLE, changed, people, with_ledger

MODEL = {"method": "marginals", "epsilon": 3, "delta": "1e-6", "levels": {"zip": 2, "age": 1}}
PREGNANT: dict[str, Any] = {
    "incrowd": 1,
    "dataset": {"name": "births"},
    "columns": {
        "sex": {"categories": ["F", "M"]},
        "pregnant": {"categories": ["no", "yes"]},
        "smokes": {"categories": ["no", "yes"]},
    },
    "release": {
        "method": "marginals",
        "epsilon": "0.2",
        "delta": "1e-6",
        "zeros": [{"sex": "M", "pregnant": ["yes", "other", "missing"]}],
        "total": 400,
    },
}
HABITS: dict[str, Any] = {
    "incrowd": 1,
    "dataset": {"name": "habits"},
    "columns": {
        "sex": {"categories": ["F", "M"]},
        "smokes": {"categories": ["no", "yes"]},
        "age": {"type": "integer", "bounds": [0, 99], "hierarchy": {"intervals": [20]}},
    },
    "release": {**MODEL, "method": "tree", "levels": {"age": 1}},
}


def _habits() -> pa.Table:
    return pa.table({"sex": ["F", "F", "M"] * 300, "smokes": ["no", "yes", "no"] * 300, "age": [*range(90)] * 10})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("model")
    release_to(_habits(), with_ledger(HABITS, place), Destination(place / "out", "csv"))
    return place / "out"


def test_a_model_is_published_and_verified_with_its_rows(folder: Path) -> None:
    assert sorted(each.name for each in folder.iterdir()) == [
        "certificate.json",
        "data.csv",
        "model.json",
        "report.html",
    ]
    found = verify(folder)
    assert found.failure is None
    assert "model" in {each.about for each in found.findings}
    assert verify(folder, data=folder / "data.csv").failure is None


def test_a_model_that_is_read_again_is_the_same(folder: Path) -> None:
    model = SyntheticModel.load(folder)
    assert model.to_text() == (folder / "model.json").read_text(encoding="utf-8")
    assert model.sample(50, seed=3).equals(SyntheticModel.load(folder / "model.json").sample(50, seed=3))


def _doubled(plain: dict[str, Any]) -> None:
    plain["tables"][0] = [2 * each for each in plain["tables"][0]]


def _moved(plain: dict[str, Any]) -> None:
    plain["tables"][-1].reverse()


def _merged(plain: dict[str, Any]) -> None:
    names = [each["name"] for each in plain["columns"]]
    cells = 1
    for each in plain["columns"]:
        cells *= len(each["classes"])
    plain["cliques"], plain["tables"] = [names], [[1 / cells] * cells]


FORGERIES: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "a table that does not sum to 1": (_doubled, "no model that incrowd wrote"),
    "tables that disagree": (_moved, "disagree about what they share"),
    "other cliques": (_merged, "other cliques"),
    "another label": (lambda plain: plain["columns"][0]["classes"].__setitem__(0, "X"), "not declared"),
    "another range": (lambda plain: plain["columns"][2]["numbers"].update(end=1000.0), "not declared"),
    "another number of rows": (lambda plain: plain.update(rows=plain["rows"] + 1), "another number of rows"),
    "another version": (lambda plain: plain.update({"incrowd model": 2}), "this version"),
    "no tables": (lambda plain: plain.pop("tables"), "no model that incrowd wrote"),
}


@pytest.mark.parametrize(("forge", "words"), FORGERIES.values(), ids=FORGERIES)
def test_a_forged_model_is_found(forge: Callable[[Any], object], words: str, folder: Path, tmp_path: Path) -> None:
    plain = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    forge(plain)
    (tmp_path / "model.json").write_text(json.dumps(plain), encoding="utf-8")
    certificate = read_certificate(folder)
    files = (folder / "data.csv", tmp_path / "model.json")
    assert file_of(files[1]).sha256 not in {file.sha256 for file in certificate.outputs}
    problems = [look.problem for look in check_of("tree").inspect(statement_of(certificate), files)]
    assert any(problem is not None and words in problem.text for problem in problems)


@pytest.mark.parametrize(
    ("forged", "words"),
    [
        ({"margin of the error": "0.000001"}, "another margin"),
        ({"mean error of pairs": "-0.1"}, "other fields"),
        ({"mean error of pairs": "1.1"}, "no share"),
        ({"rows estimated": 1}, "other rows"),
        ({"rows": 1}, "other rows"),
        ({"error scale": "1"}, "cost more"),
    ],
)
def test_forged_numbers_about_a_model_are_found(forged: dict[str, Any], words: str, folder: Path) -> None:
    certificate = read_certificate(folder)
    check = check_of("tree")
    assert check.contradiction(statement_of(certificate)) is None
    problem = check.contradiction(statement_of(replace(certificate, evidence={**certificate.evidence, **forged})))
    assert problem is not None
    assert words in problem.text


def test_a_model_is_made_once_and_drawn_from_again_and_again(tmp_path: Path) -> None:
    policy = with_ledger(changed(PEOPLE, release=MODEL, release__method="tree"), tmp_path)
    made = incrowd.synthesize(people(500), policy)
    assert made.model.sample(0).num_rows == 0
    assert {made.model.sample(20).num_rows for _ in range(3)} == {20}
    with pytest.raises(InvalidParameter, match="rows are drawn"):
        made.model.sample(-1)
    assert made.certificate.method.name == "tree"


def test_other_methods_make_no_model() -> None:
    with pytest.raises(InvalidParameter, match="marginals and tree"):
        incrowd.synthesize(people(50), changed(PEOPLE))


def _births() -> pa.Table:
    """Rows that hold what is declared never to occur: a guarantee does not depend on them."""
    return pa.table({"sex": ["F", "M"] * 200, "pregnant": ["yes", "yes", "no", "no"] * 100, "smokes": ["no"] * 400})


@pytest.mark.parametrize("method", ["marginals", "tree"])
def test_what_is_declared_never_to_occur_is_never_drawn(method: str, tmp_path: Path) -> None:
    found = incrowd.synthesize(_births(), with_ledger(changed(PREGNANT, release__method=method), tmp_path))
    for table in (found.result.to_arrow(), found.model.sample(20_000)):
        men = table.filter(pc.equal(table["sex"].cast(pa.string()), "M"))
        assert set(men["pregnant"].to_pylist()) <= {"no"}
    assert len(found.result) == 400
    assert found.certificate.evidence["rows declared"] == 400
    claim = found.certificate.claims[0]
    assert "declared-zeros" in [term.key for term in claim.not_protected]
    assert "declared-total" in [term.key for term in claim.not_protected]


@pytest.mark.parametrize(
    ("release", "words"),
    [
        ({"zeros": [{"sex": "M"}]}, "two columns or more"),
        ({"zeros": [{"sex": "M", "height": "tall"}]}, "not released"),
        ({"zeros": [{"sex": "M", "pregnant": "maybe"}]}, "does not show"),
        (
            {"zeros": [{"sex": ["F", "M", "other", "missing"], "pregnant": ["no", "yes", "other", "missing"]}]},
            "nothing at all",
        ),
        ({"total": 0}, "declared total"),
    ],
)
def test_declarations_that_cannot_be_are_refused(release: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        load_policy(changed(PREGNANT, release=PREGNANT["release"] | release)).plan  # noqa: B018


def test_a_model_that_is_too_large_from_the_start_is_refused() -> None:
    columns = {"code": {"type": "integer", "bounds": [0, 999]}}
    policy = changed(PREGNANT, release={**MODEL, "levels": None, "cells": 500}) | {"columns": columns}
    with pytest.raises(InvalidParameter, match="coarser level"):
        load_policy(policy).plan  # noqa: B018
