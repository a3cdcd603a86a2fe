"""Anonymized tables from policy to verified file, and what a broken method or a forged claim comes to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from incrowd.errors import GuaranteeBroken, Refused
from incrowd.methods.anonymity.mondrian.method import Mondrian
from incrowd.methods.shared.microdata import Anonymized
from incrowd.workflows.plan.forecast import plan
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release, release_to
from incrowd.workflows.verify.verify import verify
from tests.policies import PEOPLE, changed, people, with_ledger
from tests.released import Folder, failed, problems, release_into, reopened_from
from tests.statistics.alarm import FALSE_ALARM, stray

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
        "method": "partition", "choosing": "1/2", "rate": "1/2", "depth": 2, "least": 60,
        "epsilon": 1, "delta": "1e-3", "levels": {"zip": 2, "age": 1},
    },
)  # fmt: skip
UNIQUE = {
    "method": "full-domain", "k": 1, "lowest": {"zip": 1}, "suppression": "1/5",
    "unique": {"share": "1/50", "people": 4000, "estimator": "pitman"},
}  # fmt: skip
SCHEME: dict[str, Any] = {"release__method": "scheme", "release__levels": None, "release__choosing": "0.2"}
WAYS = [
    pytest.param(MONDRIAN, id="mondrian"),
    pytest.param(changed(MONDRIAN, release__relaxed=True, release__show="means"), id="relaxed, means"),
    pytest.param(changed(MONDRIAN, release__show="nodes", release__ordered=["sex"]), id="nodes"),
    pytest.param(changed(MONDRIAN, columns__sex__derived="rows"), id="drafted"),
    pytest.param(
        changed(MONDRIAN, columns__id={"role": "identifier"}, dataset__unit={"column": "id", "max_rows": 2}),
        id="people",
    ),
    pytest.param(changed(MONDRIAN, release=UNIQUE, columns__ill=None, columns__pay=None), id="population uniqueness"),
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


def test_a_partition_into_so_few_boxes_is_not_empty_by_chance() -> None:
    """At most twelve tuples share the 600 rows: four boxes, three illnesses.

    A tuple of n rows is hidden if its k-th row in the sample would come after n coins.  The logarithm of that chance is
    concave in n, as for every negative binomial law, so that all are hidden is likeliest if all have as many rows.
    """
    k = load_policy(PARTITION).plan.smallest_class
    assert k is not None
    assert stray([(50, 0.5)] * 12, 1, 600, k) < FALSE_ALARM


@pytest.mark.parametrize("policy", WAYS)
def test_a_release_is_written_verified_and_reported(policy: dict[str, Any], tmp_path: Path) -> None:
    form = "csv" if "show" in policy["release"] else "parquet"
    loaded = load_policy(with_ledger(policy, tmp_path))
    published = release_to(rows(), loaded, Destination(tmp_path / "out", form))
    assert len(published.release.result) > 0
    found = verify(tmp_path / "out")
    assert failed(found) == []
    assert found.complete
    assert "Who could learn what" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    reopened = reopened_from(tmp_path / "out")
    assert isinstance(reopened, Anonymized)
    shown = published.release.result
    assert isinstance(shown, Anonymized)
    assert sorted(reopened.sizes.tolist()) == sorted(shown.sizes.tolist())


def test_rows_with_weights_are_released_and_verified(tmp_path: Path) -> None:
    found = verify(release_into(tmp_path / "release", release__weights=True, **SCHEME).out)
    assert found.passed, failed(found)
    assert found.complete


def test_without_an_unbounded_budget_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused):
        release(rows(), with_ledger(changed(MONDRIAN, budget=None), tmp_path))
    assert not plan(load_policy(changed(MONDRIAN, budget=None))).allowed


def test_a_partition_whose_claim_guarantees_too_small_a_delta_is_found(tmp_path: Path) -> None:
    release_to(rows(), load_policy(with_ledger(PARTITION, tmp_path)), Destination(tmp_path / "out"))
    for place in (("claims", 0, "parameters", "delta"), ("guarantee", "delta")):
        Folder(tmp_path).forge(place, lambda _: "1/1000000")
    assert problems(tmp_path / "out")


def test_a_method_that_breaks_its_form_does_not_get_past_the_recount(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Mondrian.cut
    monkeypatch.setattr(
        Mondrian, "cut", lambda self, counts, schema: real(Mondrian(1, levels={"zip": 1}), counts, schema)
    )
    with pytest.raises(GuaranteeBroken):
        release(rows(), with_ledger(MONDRIAN, tmp_path))
    with pytest.raises(GuaranteeBroken):
        release_to(rows(), load_policy(with_ledger(MONDRIAN, tmp_path)), Destination(tmp_path / "out"))
