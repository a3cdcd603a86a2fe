"""Tables of item sets from policy to verified file; what was forged is found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from incrowd.errors import GuaranteeBroken, SourceUnreadable
from incrowd.methods.anonymity.itemsets.cuts import ItemCut
from incrowd.methods.anonymity.itemsets.method import Itemsets
from incrowd.workflows.plan.forecast import plan
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release, release_to
from incrowd.workflows.verify.verify import verify
from tests.policies import PEOPLE, changed, people, with_ledger
from tests.released import failed, reopened_from

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
    assert failed(found) == []
    assert found.complete
    report = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Make items coarser" in report
    assert "each combination of at most m items that occurs" in report
    reopened = reopened_from(tmp_path / "out")
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


def test_a_method_that_breaks_its_form_does_not_get_past_the_recount(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Itemsets, "cut", lambda _, sets, classes, tree: ItemCut(tree.nodes[0], 0.0))
    policy = changed(POLICY, release__k=40)
    with pytest.raises(GuaranteeBroken):
        release(rows(), with_ledger(policy, tmp_path))
    with pytest.raises(GuaranteeBroken):
        release_to(rows(), load_policy(with_ledger(policy, tmp_path)), Destination(tmp_path / "out"))
