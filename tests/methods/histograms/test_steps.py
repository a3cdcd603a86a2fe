"""Steps and claims of histograms are read back from their plain form, and guarantee and claims follow from them."""

from __future__ import annotations

from typing import Any

import pytest

from incrowd.core.plan import Plan
from incrowd.core.steps.bins import BinColumn, Count, ListedBins, PublishCounts
from incrowd.core.steps.counts import NoiseWhenSmall, SuppressCounts, small_counts
from incrowd.core.steps.step import step_of
from incrowd.errors import InvalidParameter
from incrowd.workflows.policy.policy import load_policy
from tests.contract.examples import POLICIES
from tests.plans import assert_changes_refused, assert_read_back
from tests.policies import PEOPLE, changed

CHECKS = ("suppressed-histogram", "blended-histogram", "private-histogram", "most-common")
BINS: dict[str, Any] = {"columns": ["sex", "age"], "levels": {"age": 2}}
SURVEY: dict[str, Any] = {"method": "suppressed-histogram", **BINS, "k": 20, "delta": "1e-6"}
PERSON: dict[str, Any] = {"columns__id": {"role": "identifier"}, "dataset__unit": {"column": "id", "max_rows": 2}}
REPLACED: dict[str, Any] = {"dataset__unit": {"adjacency": "replace-one"}}
OPEN_BINS: dict[str, Any] = {"method": "private-histogram", "levels": {"age": 3, "zip": 1}, "delta": "1e-6"}
CHANCE = {"role": "identifier", "type": "decimal"}
FURTHER: dict[str, dict[str, Any]] = {
    "survey": changed(PEOPLE, release={**SURVEY, "robust": {"low": "0.05", "high": "0.1", "irregular": 2}}),
    "survey, replaced": changed(PEOPLE, **REPLACED, release={**SURVEY, "robust": {"low": "0.05", "high": "0.1"}}),
    "drawn here": changed(
        PEOPLE,
        columns__chance=CHANCE,
        release={**SURVEY, "robust": {"low": "0.05", "high": "0.3", "probability": "chance"}},
    ),
    "sampled noise for people": changed(
        PEOPLE, **PERSON, release={"method": "private-histogram", **BINS, "epsilon": "1/3", "rate": "1/7"}
    ),
    "unknown bins, Gaussian": changed(PEOPLE, **REPLACED, release={**OPEN_BINS, "epsilon": 1, "noise": "gaussian"}),
    "a third": changed(PEOPLE, release={"method": "most-common", **BINS, "epsilon": "1/3", "counts": False}),
    "very many bins": changed(
        PEOPLE,
        columns__x={"type": "integer", "bounds": [0, 99_999]},
        columns__y={"type": "integer", "bounds": [0, 9999]},
        release={"method": "private-histogram", "columns": ["x", "y"], "epsilon": 1},
    ),
}
PLANS = {f"{method}: {name}": policy for method in CHECKS for name, policy in POLICIES[method].items()} | FURTHER


def plan_of(policy: dict[str, Any]) -> Plan:
    loaded = load_policy(policy)
    plan: Plan = loaded.method.plan(loaded.schema)
    return plan


@pytest.mark.parametrize("name", PLANS)
def test_steps_and_claims_are_read_back_and_make_the_same_guarantee(name: str) -> None:
    plan = plan_of(PLANS[name])
    assert_read_back(plan)


@pytest.mark.parametrize("name", PLANS)
def test_a_changed_step_is_another_step_or_none(name: str) -> None:
    plan = plan_of(PLANS[name])
    assert_changes_refused(plan)


def test_labels_are_listed_or_have_number_and_hash() -> None:
    assert BinColumn("zip").size is None
    for labels in ({"labels": ("a",), "number": 1, "sha256": "0"}, {"number": 3}, {"sha256": "0"}):
        with pytest.raises(InvalidParameter, match="labels"):
            BinColumn("zip", **labels)


def test_the_number_of_bins_follows_from_their_labels() -> None:
    columns = (BinColumn("sex", ("F", "M", None)), BinColumn("age", number=4, sha256="0"))
    count = Count(ListedBins.ALL, columns)
    assert count.size == 12
    with pytest.raises(InvalidParameter):
        step_of(count.to_json() | {"bins": 13}, (Count,))


def test_small_counts_have_no_noise_or_noise_with_an_epsilon() -> None:
    assert small_counts(5, None) == SuppressCounts(5)
    with pytest.raises(InvalidParameter, match="above 0"):
        NoiseWhenSmall(5, 0, clamp=True)  # type: ignore[arg-type]


def test_counts_are_not_rounded_to_multiples_of_nothing() -> None:
    with pytest.raises(InvalidParameter, match="multiples"):
        PublishCounts(0, exact=False)
