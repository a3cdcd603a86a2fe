"""Anonymized tables from policy to verified file; what was forged is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from incrowd.core.certificate import Certificate
from incrowd.errors import PromiseBroken, Refused
from incrowd.methods.anonymity.mondrian.method import Mondrian
from incrowd.methods.outcomes.anonymized import Anonymized
from incrowd.workflows.forms import form_of
from incrowd.workflows.forms.form import Problem
from incrowd.workflows.plan import plan
from incrowd.workflows.policy import load_policy
from incrowd.workflows.protect import Destination, release, release_to
from incrowd.workflows.verify import verify
from tests.policies import PEOPLE, changed, people, with_ledger

SICK = {"categories": ["flu", "gout", "none"], "role": "sensitive"}
MONDRIAN = changed(
    PEOPLE,
    columns__ill=SICK,
    columns__pay={"type": "integer", "bounds": [0, 9], "role": "sensitive"},
    release={"method": "mondrian", "k": 5, "l": 2, "t": "0.6", "entropy_l": "1.1", "levels": {"zip": 1}},
    budget={"unbounded": "compared with other tools"},
)
PARTITION = changed(
    PEOPLE,
    columns__ill=SICK,
    release={
        "method": "partition", "choosing": "1/2", "rate": "1/2", "depth": 3, "least": 60,
        "target": {"epsilon": 1, "delta": "1e-3"}, "levels": {"zip": 2, "age": 1},
    },
)  # fmt: skip
WAYS = [
    pytest.param(MONDRIAN, id="mondrian"),
    pytest.param(changed(MONDRIAN, release__relaxed=True, release__show="means"), id="relaxed, means"),
    pytest.param(changed(MONDRIAN, release__show="nodes", release__ordered=["sex"]), id="nodes"),
    pytest.param(changed(MONDRIAN, columns__sex__derived="rows"), id="drafted"),
    pytest.param(
        changed(MONDRIAN, columns__id={"role": "identifier"}, dataset__unit={"column": "id", "max_rows": 2}),
        id="people",
    ),
    pytest.param(PARTITION, id="partition"),
    pytest.param(
        changed(PARTITION, columns__sex__derived="rows", budget={"unbounded": "an archive"}), id="partition, drafted"
    ),
]


def rows() -> pa.Table:
    table = people(600)
    ills = pa.array([["flu", "gout", "none"][n * 7 % 3] for n in range(600)])
    pays = pa.array([None if n % 90 == 0 else str(n * 13 % 10) for n in range(600)])
    ids = pa.array([f"p{n // 2}" for n in range(600)])
    return table.append_column("ill", ills).append_column("pay", pays).append_column("id", ids)


@pytest.mark.parametrize("policy", WAYS)
def test_a_release_is_written_verified_and_reported(policy: dict[str, Any], tmp_path: Path) -> None:
    form = "csv" if "show" in policy["release"] else "parquet"
    loaded = load_policy(with_ledger(policy, tmp_path))
    published = release_to(rows(), loaded, Destination(tmp_path / "out", form))
    assert len(published.release.result) > 0
    found = verify(tmp_path / "out")
    assert [finding for finding in found.findings if finding.outcome == "failed"] == []
    assert found.complete
    assert "Who could learn what" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    reopened = form_of(found.certificate).reopen(found.certificate, tmp_path / "out" / f"data.{form}")
    assert isinstance(reopened, Anonymized)
    shown = published.release.result
    assert isinstance(shown, Anonymized)
    assert sorted(reopened.sizes.tolist()) == sorted(shown.sizes.tolist())


def test_without_an_unbounded_budget_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused):
        release(rows(), with_ledger(changed(MONDRIAN, budget=None), tmp_path))
    assert not plan(load_policy(changed(MONDRIAN, budget=None))).allowed


@pytest.fixture
def published(tmp_path: Path) -> Path:
    release_to(rows(), load_policy(with_ledger(MONDRIAN, tmp_path)), Destination(tmp_path / "out"))
    return tmp_path / "out"


def looks(folder: Path, table: pa.Table) -> list[Problem]:
    """Put another table in the place of the file and return what the looks find."""
    certificate = Certificate.from_json(json.loads((folder / "certificate.json").read_text(encoding="utf-8")))
    pq.write_table(table, folder / "other.parquet")
    found = [look.problem for look in form_of(certificate).looks(certificate, folder / "other.parquet")]
    return [problem for problem in found if problem is not None]


def test_a_file_that_breaks_k_l_or_t_is_found(published: Path) -> None:
    table = pq.read_table(published / "data.parquet")
    assert looks(published, table) == []
    first = table.slice(0, 1).to_pylist()[0]
    assert any("smallest class" in each.text for each in looks(published, table.slice(1, 590)))
    inside = [row["age"] == first["age"] and row["zip"] == first["zip"] for row in table.to_pylist()]
    same = pa.array(["flu" if there else ill for there, ill in zip(inside, table["ill"].to_pylist(), strict=True)])
    alike = table.set_column(table.column_names.index("ill"), "ill", same)
    texts = " ".join(each.text for each in looks(published, alike))
    assert "least diverse class shows 1" in texts
    assert "least entropy is 1.0" in texts
    assert any("columns" in each.text for each in looks(published, table.append_column("id", pa.array(range(600)))))


def change(certificate: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    place: Any = certificate
    *above, last = path.split("/")
    for step in above:
        place = place[int(step) if step.isdigit() else step]
    place[int(last) if last.isdigit() else last] = value
    return certificate


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("claims/0/parameters/k", 6),
        ("claims/0/parameters/columns", ["sex"]),
        ("claims/1/parameters/l", 3),
        ("claims/2/parameters/l", "3/2"),
        ("claims/3/parameters/t", "1/2"),
        ("claims/3/parameters/distance", "ordered"),
        ("claims/1/parameters/sensitive", "age"),
        ("claims/0/not_protected", []),
        ("claims/0/not_protected", [""]),
        ("guarantee/assumes", []),
        ("claims/0/preconditions", []),
        ("guarantee/loss/parameters", [["k", "6"]]),
        ("chain/1/columns", ["sex", "age"]),
        ("chain/1/until/k", 4),
        ("chain/0/columns", []),
    ],
)
def test_forged_certificates_are_found(published: Path, path: str, value: Any) -> None:
    file = published / "certificate.json"
    plain = json.loads(file.read_text(encoding="utf-8"))
    form, forged = form_of(Certificate.from_json(plain)), Certificate.from_json(change(plain, path, value))
    checks: list[Callable[[Certificate], Problem | None]] = [form.check_complete, form.check_steps]
    problems = [check(forged) for check in checks] + [form.check_claim(claim, forged) for claim in forged.claims]
    assert any(problem is not None and not problem.undecided for problem in problems)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("claims/0/parameters/epsilon", "0.1"),
        ("claims/0/parameters/k", 90),
        ("claims/0/parameters/choosing", "1/4"),
        ("claims/0/parameters/max_rows", 2),
        ("chain/0/epsilon", "1/4"),
        ("chain/0/depth", 0),
        ("chain/1/rate", "1/4"),
        ("chain/2/columns", []),
    ],
)
def test_forged_partitions_are_found(tmp_path: Path, path: str, value: Any) -> None:
    made = release(rows(), with_ledger(PARTITION, tmp_path)).certificate
    forged = Certificate.from_json(change(json.loads(made.to_text()), path, value))
    form = form_of(made)
    problems = [form.check_steps(forged), *(form.check_claim(claim, forged) for claim in forged.claims)]
    assert any(problem is not None and not problem.undecided for problem in problems)


def test_a_partition_whose_claim_promises_too_small_a_delta_is_found(tmp_path: Path) -> None:
    plain = json.loads(release(rows(), with_ledger(PARTITION, tmp_path)).certificate.to_text())
    plain["claims"][0]["parameters"]["delta"] = plain["guarantee"]["delta"] = "1/1000000"
    forged = Certificate.from_json(plain)
    problem = form_of(forged).check_claim(forged.claims[0], forged)
    assert problem is not None
    assert "its delta is" in problem.text


def test_a_method_that_breaks_its_form_does_not_get_past_the_recount(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Mondrian.cut
    monkeypatch.setattr(
        Mondrian, "cut", lambda self, counts, schema: real(Mondrian(1, levels={"zip": 1}), counts, schema)
    )
    with pytest.raises(PromiseBroken):
        release(rows(), with_ledger(MONDRIAN, tmp_path))
    with pytest.raises(PromiseBroken):
        release_to(rows(), load_policy(with_ledger(MONDRIAN, tmp_path)), Destination(tmp_path / "out"))
