"""Tables with missing cells, and locally recoded ones, from policy to verified file; what was forged is found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from incrowd.errors import GuaranteeBroken, Refused
from incrowd.methods.anonymity.cell_suppression.method import CellSuppression
from incrowd.methods.anonymity.local_recoding import LocalRecoding
from incrowd.methods.shared.microdata import Anonymized, Blanked
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release, release_to
from incrowd.workflows.verify.verify import verify
from tests.policies import PEOPLE, changed, people, with_ledger
from tests.released import failed, problems, reopened_from

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
    assert failed(found) == []
    assert found.complete
    assert "Who could learn what" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    again = reopened_from(tmp_path / "out")
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


def test_one_sense_of_missing_does_not_pass_for_the_other(tmp_path: Path) -> None:
    """The claim, the steps and the guarantee are all forged to say the strict sense: the file does not keep it."""
    made = release_to(rows(), load_policy(with_ledger(WILD, tmp_path)), Destination(tmp_path / "out"))
    assert made.release.certificate.evidence["smallest class"] < 5
    text = (tmp_path / "out" / "certificate.json").read_text(encoding="utf-8")
    forged = text.replace(" with wildcards", "").replace('"missing":"matches"', '"missing":"value"')
    forged = forged.replace('"missing": "matches"', '"missing": "value"')
    (tmp_path / "out" / "certificate.json").write_text(forged, encoding="utf-8")
    assert problems(tmp_path / "out")


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
    with pytest.raises(GuaranteeBroken):
        release(rows(), with_ledger(policy, tmp_path))
    with pytest.raises(GuaranteeBroken):
        release_to(rows(), load_policy(with_ledger(policy, tmp_path)), Destination(tmp_path / "out"))
