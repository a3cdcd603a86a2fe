"""Tables with missing cells, and locally recoded ones, from policy to verified file; what was forged is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.certificate import Certificate
from incrowd.errors import PromiseBroken, Refused
from incrowd.methods.anonymity.local.method import LocalRecoding
from incrowd.methods.anonymity.suppression.method import CellSuppression
from incrowd.methods.outcomes.anonymized import Anonymized
from incrowd.methods.outcomes.blanked import Blanked
from incrowd.workflows.forms import form_of
from incrowd.workflows.forms.blanked.again import fewest_alike, fewest_matching, tuples_of
from incrowd.workflows.forms.form import Problem
from incrowd.workflows.policy import load_policy
from incrowd.workflows.protect import Destination, release, release_to
from incrowd.workflows.verify import verify
from tests.methods.anonymity.suppression import slow
from tests.policies import PEOPLE, changed, people, with_ledger

SICK = {"categories": ["flu", "gout", "none"], "role": "sensitive"}
CELLS = changed(
    PEOPLE,
    columns__ill=SICK,
    release={"method": "cell-suppression", "k": 5, "levels": {"zip": 1}, "subsets": {1: 9}},
    budget={"unbounded": "compared with other tools"},
)
WILD = changed(CELLS, release__missing="matches")
LOCAL = changed(
    CELLS, release={"method": "local-recoding", "k": 5, "l": 2, "t": "0.6", "lowest": {"zip": 1}, "left": "1/2"}
)
OF_PEOPLE = {"columns__id": {"role": "identifier"}, "dataset__unit": {"column": "id", "max_rows": 2}}
WAYS = [
    pytest.param(CELLS, id="strict"),
    pytest.param(WILD, id="wild"),
    pytest.param(changed(CELLS, release__k=1), id="subsets only"),
    pytest.param(changed(CELLS, columns__sex__derived="rows"), id="drafted"),
    pytest.param(changed(WILD, **OF_PEOPLE), id="people"),
    pytest.param(LOCAL, id="local"),
    pytest.param(changed(LOCAL, release__suppression="1/10", release__t=None, **OF_PEOPLE), id="local, people"),
]


def rows() -> pa.Table:
    ills = pa.array([["flu", "gout", "none"][n * 7 % 3] for n in range(600)])
    return people(600).append_column("ill", ills).append_column("id", pa.array([f"p{n // 2}" for n in range(600)]))


@pytest.mark.parametrize("policy", WAYS)
def test_a_release_is_written_verified_and_reported(policy: dict[str, Any], tmp_path: Path) -> None:
    form = "csv" if "subsets" in policy["release"] else "parquet"
    published = release_to(rows(), load_policy(with_ledger(policy, tmp_path)), Destination(tmp_path / "out", form))
    outcome = published.release.result
    assert isinstance(outcome, Anonymized)
    assert len(outcome) > 0
    found = verify(tmp_path / "out")
    assert [finding for finding in found.findings if finding.outcome == "failed"] == []
    assert found.complete
    assert "Who could learn what" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    again = form_of(found.certificate).reopen(found.certificate, tmp_path / "out" / f"data.{form}")
    assert type(again) is (Blanked if isinstance(outcome, Blanked) else Anonymized)
    assert sorted(again.sizes.tolist()) == sorted(outcome.sizes.tolist())


def test_the_report_says_in_which_sense_missing_was_counted(tmp_path: Path) -> None:
    release_to(rows(), load_policy(with_ledger(WILD, tmp_path)), Destination(tmp_path / "out"))
    report = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    for words in ("k-anonymity with wildcards", "where an empty cell matches anything", "Empty cells in the quasi"):
        assert words in report


def test_without_an_unbounded_budget_it_is_refused(tmp_path: Path) -> None:
    for policy in (CELLS, WILD, LOCAL):
        with pytest.raises(Refused):
            release(rows(), with_ledger(changed(policy, budget=None), tmp_path))


def opened(folder: Path) -> tuple[Certificate, dict[str, Any]]:
    plain = json.loads((folder / "certificate.json").read_text(encoding="utf-8"))
    return Certificate.from_json(plain), plain


@pytest.fixture(scope="module", params=[CELLS, WILD], ids=["strict", "wild"])
def published(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published")
    release_to(rows(), load_policy(with_ledger(request.param, folder)), Destination(folder / "out"))
    return folder / "out"


def looks(folder: Path, table: pa.Table) -> list[Problem]:
    """Put another table in the place of the file and return what the looks find."""
    certificate, _ = opened(folder)
    pq.write_table(table, folder / "other.parquet")
    found = [look.problem for look in form_of(certificate).looks(certificate, folder / "other.parquet")]
    return [problem for problem in found if problem is not None]


def test_a_row_that_is_shown_in_full_again_is_found(published: Path) -> None:
    """A row that nobody is like, and that no empty cell of another row could be."""
    table = pq.read_table(published / "data.parquet")
    assert looks(published, table) == []
    emptied = [name for name in ("sex", "age", "zip") if table[name].null_count]
    assert emptied, "nothing was left out, so nothing is tested"
    plain = table.to_pylist()
    strange = {"sex": "F", "age": 31, "zip": "77*", "ill": "flu"}
    full = [row for row in plain if None not in row.values()]
    forged = pa.Table.from_pylist([*full, strange], schema=table.schema)
    assert looks(published, forged) != []
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
        ("claims/0/parameters/k", "5"),
        ("claims/0/parameters/columns", ["sex"]),
        ("claims/0/parameters/people", 3),
        ("claims/0/kind", "k-anonymity of subsets"),
        ("claims/1/parameters/k", 8),
        ("claims/1/parameters/size", 2),
        ("claims/0/not_protected", []),
        ("claims/0/not_protected", [""]),
        ("guarantee/assumes", []),
        ("claims/0/preconditions", []),
        ("claims/0/unit", "each household"),
        ("guarantee/loss/parameters", [["k", "6"]]),
        ("guarantee/loss/criterion", "k-map"),
        ("chain/1/columns", ["sex", "age"]),
        ("chain/1/until/k", 4),
        ("chain/1/until", {"k": 5}),
        ("chain/1/until", {"k": 5, "k of any 01": 9}),
        ("chain/1/missing", "guess"),
        ("chain/0/columns", []),
    ],
)
def test_forged_certificates_are_found(published: Path, path: str, value: Any) -> None:
    certificate, plain = opened(published)
    form, forged = form_of(certificate), Certificate.from_json(change(plain, path, value))
    checks: list[Callable[[Certificate], Problem | None]] = [form.check_complete, form.check_steps]
    problems = [check(forged) for check in checks] + [form.check_claim(claim, forged) for claim in forged.claims]
    assert any(problem is not None and not problem.undecided for problem in problems)


def test_one_sense_of_missing_does_not_pass_for_the_other(tmp_path: Path) -> None:
    """The claim, the steps and the guarantee are all forged to say the strict sense: the file does not keep it."""
    made = release_to(rows(), load_policy(with_ledger(WILD, tmp_path)), Destination(tmp_path / "out"))
    assert made.release.certificate.evidence["smallest class"] < 5
    text = (tmp_path / "out" / "certificate.json").read_text(encoding="utf-8")
    forged = text.replace(" with wildcards", "").replace('"missing":"matches"', '"missing":"value"')
    forged = forged.replace('"missing": "matches"', '"missing": "value"')
    certificate = Certificate.from_json(json.loads(forged))
    form = form_of(certificate)
    assert form.check_complete(certificate) is form.check_steps(certificate) is None
    found = [look.problem for look in form.looks(certificate, tmp_path / "out" / "data.parquet")]
    assert any(problem is not None and "rarest combination" in problem.text for problem in found)


@pytest.mark.parametrize(
    ("policy", "method", "weak"),
    [
        (CELLS, CellSuppression, CellSuppression(1, levels={"zip": 1})),
        (WILD, CellSuppression, CellSuppression(1, levels={"zip": 1})),
        (LOCAL, LocalRecoding, LocalRecoding(1, lowest={"zip": 1})),
    ],
    ids=["strict", "wild", "local"],
)
def test_a_method_that_breaks_its_form_does_not_get_past_the_recount(
    policy: dict[str, Any], method: type, weak: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "recoded" if method is LocalRecoding else "blanked"
    real = getattr(method, name)
    monkeypatch.setattr(method, name, lambda _, *given: real(weak, *given))
    with pytest.raises(PromiseBroken):
        release(rows(), with_ledger(policy, tmp_path))
    with pytest.raises(PromiseBroken):
        release_to(rows(), load_policy(with_ledger(policy, tmp_path)), Destination(tmp_path / "out"))


ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=25)


@settings(max_examples=12, deadline=None)
@given(ROWS, st.integers(1, 5))
def test_rows_are_counted_again_as_one_by_one(table: list[tuple[int, int, int]], enough: int) -> None:
    columns = {str(place): pa.array([str(row[place]) if row[place] else None for row in table]) for place in range(3)}
    counted = tuples_of(pa.table(columns).to_batches(max_chunksize=7), ["0", "1", "2"])
    for size in (None, 1, 2):
        subsets = list(combinations(range(3), size or 3))
        assert fewest_alike(counted, size) == min(slow.fewest_alike(table, some) for some in subsets)
        least = min(slow.fewest_matching(table, some) for some in subsets)
        assert fewest_matching(counted, enough, size) == min(enough, least)


def test_a_table_without_rows_has_no_rarest_combination() -> None:
    nobody = tuples_of([], ["sex"])
    assert fewest_alike(nobody) is None
    assert fewest_matching(nobody, 5) is None
