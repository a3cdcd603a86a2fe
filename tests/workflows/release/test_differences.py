"""A release without an ε is compared with earlier ones of the same people before it appears."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.core.steps.around import REFUSABLE, Compare
from incrowd.errors import Refused
from incrowd.verifier.check import Verdict
from incrowd.workflows.policy.policy import Policy, load_policy
from incrowd.workflows.release.deliver import Destination, PublishedRelease
from incrowd.workflows.release.tables import ReleaseTerms, release, release_to
from incrowd.workflows.verify.verify import verify
from tests.policies import PEOPLE, changed, people, with_ledger, written

CROWDS = changed(
    PEOPLE,
    release={"method": "full-domain", "k": 10, "lowest": {"age": 2, "zip": 1}},
    budget={"epsilon": 9, "delta": "1e-3", "unbounded": "a test"},
)
ROWS = people()


def read(folder: Path, **changes: Any) -> Policy:
    return load_policy(written(with_ledger(changed(CROWDS, **changes), folder), folder))


def out(policy: Policy, name: str, table: pa.Table = ROWS, **terms: Any) -> PublishedRelease:
    return release_to(table, policy, Destination(policy.folder / name, "csv"), None, ReleaseTerms(**terms))


def steps(published: PublishedRelease) -> list[type]:
    return [type(step) for step in published.release.certificate.steps]


def test_the_same_people_again_are_released_and_the_certificate_tells_of_the_check(tmp_path: Path) -> None:
    policy = read(tmp_path)
    first, second = out(policy, "a"), out(policy, "b")
    assert Compare not in steps(first)
    assert Compare in steps(second)
    assert all(REFUSABLE in claim.not_protected for claim in second.release.certificate.claims)
    found = verify(second.folder, policy=policy)
    assert all(each.verdict is not Verdict.FAILED for each in found.findings), found


def test_one_person_who_left_is_named_by_the_cell_and_nothing_appears(tmp_path: Path) -> None:
    policy = read(tmp_path)
    out(policy, "a")
    with pytest.raises(Refused, match=r"isolate fewer than 10 .* cell sex ., age .*differ by 1.*counts one more"):
        out(policy, "b", ROWS.slice(1))
    assert not (tmp_path / "b").exists()
    ledger = Ledger.open(policy.ledger_address)
    assert [each.state for each in ledger.unfinished()] == ["no release"]


def test_finer_and_coarser_levels_are_compared_at_the_coarser_ones(tmp_path: Path) -> None:
    out(read(tmp_path), "a")
    finer = read(tmp_path, release__lowest={"age": 1, "zip": 1}, release__k=2)
    with pytest.raises(Refused, match=r"isolate fewer than 10"):
        out(finer, "b", pa.concat_tables([ROWS.slice(1), ROWS.slice(1)]).slice(0, ROWS.num_rows - 1))
    out(read(tmp_path, release__lowest={"age": 3, "zip": 1}), "c")


@pytest.mark.parametrize("spoil", [shutil.rmtree, lambda folder: (folder / "data.csv").write_text("x\n")])
def test_an_earlier_release_that_is_not_found_is_named_and_costs_nothing(tmp_path: Path, spoil: Any) -> None:
    policy = read(tmp_path)
    first = out(policy, "a")
    spoil(first.folder)
    with pytest.raises(Refused, match=f"{first.release.certificate.id}.*--force"):
        out(policy, "b")
    assert Ledger.open(policy.ledger_address).standing("people").totals.charges == 1
    assert Compare not in steps(out(policy, "b", anyway=True))


def test_a_release_that_stayed_in_memory_is_missing_too(tmp_path: Path) -> None:
    policy = read(tmp_path)
    release(ROWS, policy)
    with pytest.raises(Refused, match="is not there as it was published"):
        out(policy, "a")


def test_what_cannot_be_compared_is_told(tmp_path: Path) -> None:
    out(read(tmp_path), "a")
    other = read(
        tmp_path,
        columns={
            "sex": {"role": "sensitive", "categories": ["F", "M"]},
            "age": {"role": "identifier"},
            "town": {"categories": ["x"]},
        },
        release__lowest={},
    )
    table = pa.table({"sex": ROWS["sex"], "age": ROWS["age"], "town": pa.array(["x"] * ROWS.num_rows)})
    assert any("no quasi-identifier in common" in note for note in out(other, "b", table).notes)


def test_a_release_with_an_epsilon_is_never_held_back(tmp_path: Path) -> None:
    shutil.rmtree(out(read(tmp_path), "a").folder)
    private = read(tmp_path, release=PEOPLE["release"])
    assert private.plan.guarantee.loss != read(tmp_path).plan.guarantee.loss
    assert Compare not in steps(out(private, "b", ROWS.slice(1)))


def test_the_internal_part_knows_where_the_release_went(tmp_path: Path) -> None:
    published = out(read(tmp_path), "a")
    kept = json.loads((published.internal / "internal.json").read_text())
    assert (kept["published"], kept["k"]) == (str(tmp_path / "a"), 10)
