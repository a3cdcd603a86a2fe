"""Tables of item sets from policy to verified file; what was forged is found."""

from __future__ import annotations

import json
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.core.certificate import Certificate
from incrowd.errors import PromiseBroken, SourceUnreadable
from incrowd.methods.anonymity.itemsets.cutting import Cut
from incrowd.methods.anonymity.itemsets.method import Itemsets
from incrowd.workflows.forms import form_of
from incrowd.workflows.forms.form import Problem
from incrowd.workflows.forms.itemsets.again import rarest
from incrowd.workflows.plan import plan
from incrowd.workflows.policy import load_policy
from incrowd.workflows.protect import Destination, release, release_to
from incrowd.workflows.verify import verify
from tests.policies import PEOPLE, changed, people, with_ledger
from tests.workflows.forms.test_anonymized import change

TREE = {"drinks": ["tea", "milk", "wine"], "food": ["bread", "rice"], "plants": ["flowers"]}
NAMES = [name for names in TREE.values() for name in names]
POLICY = changed(
    PEOPLE,
    columns__zip=None,
    columns__age__role="sensitive",
    columns__bought={"separator": ";", "hierarchy": {"tree": TREE}},
    release={"method": "itemsets", "k": 4, "m": 2, "levels": {"age": 2}},
    budget={"unbounded": "compared with other tools"},
)


def rows(*, lists: bool = False) -> pa.Table:
    chance = np.random.default_rng(5)
    bought = [chance.choice(NAMES, chance.integers(0, 4), replace=False).tolist() for _ in range(300)]
    column = pa.array(bought) if lists else pa.array([";".join(each) or None for each in bought], pa.string())
    return people(300).append_column("bought", column)


@pytest.mark.parametrize("form", ["csv", "parquet"])
@pytest.mark.parametrize("lists", [True, False])
def test_a_release_is_written_verified_and_reported(tmp_path: Path, form: str, *, lists: bool) -> None:
    pq.write_table(rows(lists=lists), tmp_path / "rows.parquet")
    loaded = load_policy(with_ledger(POLICY, tmp_path))
    published = release_to(tmp_path / "rows.parquet", loaded, Destination(tmp_path / "out", form))
    assert len(published.release.result) == 300
    found = verify(tmp_path / "out")
    assert [finding for finding in found.findings if finding.outcome == "failed"] == []
    assert found.complete
    report = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Make items coarser" in report
    assert "each combination of at most m items that occurs" in report
    reopened = form_of(found.certificate).reopen(found.certificate, tmp_path / "out" / f"data.{form}")
    assert reopened.evidence(loaded.schema.unit, private=False) == found.certificate.evidence


def test_a_table_without_rows_is_released_empty(tmp_path: Path) -> None:
    release_to(rows().slice(0, 0), load_policy(with_ledger(POLICY, tmp_path)), Destination(tmp_path / "out"))
    found = verify(tmp_path / "out")
    assert found.passed
    assert found.certificate.evidence == {"rows": 0}


def test_the_plan_names_no_nearest_method_that_could_not_read_the_column() -> None:
    assert plan(load_policy(POLICY)).nearest == ()


def test_a_list_without_a_declared_separator_is_refused_before_a_charge(tmp_path: Path) -> None:
    declared = with_ledger(changed(POLICY, columns__bought={"categories": NAMES}), tmp_path)
    policy = changed(declared, release={"method": "full-domain", "k": 2, "levels": {}})
    with pytest.raises(SourceUnreadable, match="declares a separator"):
        release(rows(lists=True), policy)
    assert plan(load_policy(policy)).standing is None


@pytest.fixture
def published(tmp_path: Path) -> Path:
    release_to(rows(), load_policy(with_ledger(POLICY, tmp_path)), Destination(tmp_path / "out"))
    return tmp_path / "out"


def looks(folder: Path, table: pa.Table) -> list[Problem]:
    """Put another table in the place of the file and return what the looks find."""
    certificate = Certificate.from_json(json.loads((folder / "certificate.json").read_text(encoding="utf-8")))
    pq.write_table(table, folder / "other.parquet")
    found = [look.problem for look in form_of(certificate).looks(certificate, folder / "other.parquet")]
    return [problem for problem in found if problem is not None]


def test_a_file_with_a_rare_combination_is_found(published: Path) -> None:
    table = pq.read_table(published / "data.parquet")
    assert looks(published, table) == []
    bought = table["bought"].to_pylist()
    bought[bought.index(None)] = "tea;rice;something new"
    other = table.set_column(table.column_names.index("bought"), "bought", pa.array(bought))
    assert any("occurs in 1 rows, k is 4" in each.text for each in looks(published, other))
    assert any("columns" in each.text for each in looks(published, table.append_column("id", pa.array(range(300)))))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("claims/0/parameters/k", 5),
        ("claims/0/parameters/m", 3),
        ("claims/0/parameters/columns", []),
        ("claims/0/parameters/separator", ","),
        ("claims/0/parameters/items", "age"),
        ("claims/0/unit", "one person"),
        ("claims/0/not_protected", []),
        ("claims/0/not_protected", [""]),
        ("guarantee/assumes", []),
        ("claims/0/preconditions", []),
        ("claims", []),
        ("guarantee/loss/parameters", [["k", "5"], ["m", "2"]]),
        ("chain/1/m", 1),
        ("chain/1/columns", []),
        ("chain/0/columns", []),
    ],
)
def test_forged_certificates_are_found(published: Path, path: str, value: Any) -> None:
    plain = json.loads((published / "certificate.json").read_text(encoding="utf-8"))
    form, forged = form_of(Certificate.from_json(plain)), Certificate.from_json(change(plain, path, value))
    problems = [form.check_complete(forged), form.check_steps(forged)]
    problems += [form.check_claim(claim, forged) for claim in forged.claims]
    assert any(problem is not None and not problem.undecided for problem in problems)


def test_strange_steps_and_claims_are_left_undecided(published: Path) -> None:
    plain = json.loads((published / "certificate.json").read_text(encoding="utf-8"))
    form = form_of(Certificate.from_json(plain))
    strange = Certificate.from_json(change(change(plain, "chain/1/step", "guess"), "claims/0/kind", "magic"))
    for problem in (form.check_steps(strange), form.check_claim(strange.claims[0], strange)):
        assert problem is not None
        assert problem.undecided


def test_a_method_that_breaks_its_form_does_not_get_past_the_recount(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Itemsets, "cut", lambda _, sets, classes, tree: Cut(tree.nodes[0], 0.0))
    policy = changed(POLICY, release__k=40)
    with pytest.raises(PromiseBroken):
        release(rows(), with_ledger(policy, tmp_path))
    with pytest.raises(PromiseBroken):
        release_to(rows(), load_policy(with_ledger(policy, tmp_path)), Destination(tmp_path / "out"))


@given(st.lists(st.frozensets(st.sampled_from("abcdef"), max_size=5), min_size=1, max_size=12), st.integers(1, 4))
def test_the_rarest_combination_is_that_of_the_definition(sets: list[frozenset[str]], m: int) -> None:
    times = Counter(chosen for items in sets for size in range(m + 1) for chosen in combinations(sorted(items), size))
    assert rarest({(): Counter(sets)}, m) == min(times.values())
