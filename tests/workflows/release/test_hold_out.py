"""`release --hold-out`: people who are left out before everything, kept on a list, and named by their share alone."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from scipy.stats import binom

from incrowd.core.schema import Column
from incrowd.core.steps.around import HoldOut
from incrowd.engines.local.views import DividedRows, HeldOut
from incrowd.engines.readers.sources import open_source
from incrowd.engines.settings import Spark
from incrowd.errors import InvalidParameter
from incrowd.verifier.check import Verdict
from incrowd.verifier.files import CERTIFICATE
from incrowd.verifier.judge import check_steps, statement_of
from incrowd.workflows.attack.publication import table_of
from incrowd.workflows.certificates import certificate_of
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.registry import check_of
from incrowd.workflows.release.deliver import Destination, PublishedRelease
from incrowd.workflows.release.outsiders import divided, held_out_of
from incrowd.workflows.release.prepare import Background, PolicyOrder, prepare
from incrowd.workflows.release.tables import ReleaseTerms, release_to, share_of
from incrowd.workflows.verify.verify import verify
from tests.contract.examples import POLICIES, rows
from tests.contract.forging import caught, forgeries
from tests.policies import changed, with_ledger, written
from tests.statistics.alarm import FALSE_ALARM

TENTH = Fraction(1, 10)


def held(plain: dict[str, Any], folder: Path, share: Fraction = TENTH) -> tuple[PublishedRelease, Any]:
    policy = load_policy(written(with_ledger(plain, folder), folder))
    return release_to(rows(), policy, Destination(folder / "out", "csv"), None, ReleaseTerms(share)), policy


@pytest.mark.parametrize("method", POLICIES)
def test_every_method_can_hold_people_out_and_guarantees_the_same(method: str, tmp_path: Path) -> None:
    published, policy = held(next(iter(POLICIES[method].values())), tmp_path)
    certificate = published.release.certificate
    assert certificate.steps == (HoldOut(TENTH), *policy.plan.steps)
    assert (certificate.guarantee, certificate.claims) == (policy.plan.guarantee, policy.plan.claims)
    read = certificate_of(json.loads((published.folder / CERTIFICATE).read_text()))
    statement = replace(statement_of(read), basis=replace(policy.plan.basis, steps=read.steps))
    assert check_steps(statement, check_of(method)) is None
    file = published.internal / "held-out.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text())["share"] == "1/10"


def test_the_list_tells_who_was_left_out_and_the_rest_is_what_was_released(tmp_path: Path) -> None:
    plain = changed(POLICIES["full-domain"]["loss"], release__k=2)
    published, policy = held(plain, tmp_path, Fraction(1, 2))
    released, outsiders = divided(open_source(rows()), policy, published.release.certificate)
    assert table_of(released).num_rows == len(published.release.result)
    assert table_of(released).num_rows + table_of(outsiders).num_rows == rows().num_rows
    with pytest.raises(InvalidParameter, match="the data has changed since"):
        divided(open_source(rows().slice(1)), policy, published.release.certificate)
    with pytest.raises(InvalidParameter, match="has no stored holdout group"):
        held_out_of(policy, "another")


def test_a_person_is_held_out_with_all_rows_and_each_by_an_own_coin() -> None:
    people = pa.table({"id": [f"p{n % 4000}" for n in range(12000)], "zip": ["1"] * 12000})
    out = table_of(DividedRows(open_source(people), HeldOut(TENTH, bytes(range(32)), Column("id")), alone=True))
    counts = out["id"].value_counts().field("counts").to_pylist()
    assert set(counts) == {3}
    low, high = binom.interval(1 - FALSE_ALARM, 4000, 0.1)
    assert low <= len(counts) <= high
    assert table_of(
        DividedRows(open_source(people), HeldOut(TENTH, bytes(32), Column("id"))), ["zip"]
    ).column_names == ["zip"]


def test_forged_shares_and_steps_are_caught(tmp_path: Path) -> None:
    published, policy = held(POLICIES["full-domain"]["loss"], tmp_path)
    found = verify(published.folder, policy=policy)
    assert [each for each in found.findings if each.verdict is Verdict.FAILED] == []
    plain = json.loads((published.folder / CERTIFICATE).read_text())
    assert caught(plain) is None
    twice = {**plain, "steps": [plain["steps"][0], *plain["steps"]]}
    last = {**plain, "steps": [*plain["steps"][1:], plain["steps"][0]]}
    assert caught(twice)
    assert caught(last)
    assert all(caught(each.plain) for each in forgeries(plain) if each.top in ("guarantee", "claims"))


def test_a_share_is_a_share_and_a_cluster_holds_nobody_out(tmp_path: Path) -> None:
    assert share_of("12.5%") == Fraction(1, 8)
    for wrong in ("0", "100%", "some"):
        with pytest.raises(InvalidParameter):
            share_of(wrong)
    policy = load_policy(with_ledger(next(iter(POLICIES["safe"].values())), tmp_path))
    object.__setattr__(policy, "engine", Spark())
    order = PolicyOrder.of(policy.plan, policy, Background())
    with pytest.raises(InvalidParameter, match="held out where rows are read here"):
        prepare(order, rows(), None, None, TENTH)  # type: ignore[arg-type]
