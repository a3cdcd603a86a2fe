"""Two ways to the same estimates of unique people."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.certificate import Certificate
from incrowd.criteria import risk
from incrowd.criteria.risk import Estimator
from incrowd.workflows.forms import form_of
from incrowd.workflows.forms.anonymized.estimates import MODELS, unique_share
from incrowd.workflows.policy import load_policy
from incrowd.workflows.protect import Destination, release_to
from incrowd.workflows.verify import verify
from tests.policies import PEOPLE, changed, people, with_ledger
from tests.workflows.forms.test_anonymized import change

MANY = [1] * 120 + [2] * 40 + [3] * 20 + [4] * 12 + [5] * 8 + [6] * 5 + [10] * 3 + [20] * 2 + [50]
SIZES = st.lists(st.sampled_from([1, 1, 1, 2, 2, 3, 5, 9]), min_size=1, max_size=25)


@pytest.mark.parametrize("people", [600, 3000, 20_000])
@pytest.mark.parametrize("model", MODELS)
def test_a_large_table(model: Estimator, people: int) -> None:
    expected = risk.unique_share(np.array(MANY), people, model)
    assert unique_share(MANY, people, model) == pytest.approx(expected, rel=1e-9)


@settings(max_examples=40, deadline=None)
@given(SIZES, st.sampled_from([1, 2, 7, 30]), st.sampled_from(MODELS))
def test_small_tables(sizes: list[int], times: int, model: Estimator) -> None:
    people = sum(sizes) * times
    expected = risk.unique_share(np.array(sizes), people, model)
    assert unique_share(sizes, people, model) == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_more_rows_than_people_and_strange_models_are_not_estimated() -> None:
    assert unique_share([1, 2], 2, "pitman") is None
    with pytest.raises(ValueError, match="not known here"):
        unique_share([1, 2], 10, "guess")


@pytest.mark.parametrize("model", MODELS)
def test_a_release_under_each_estimate_is_counted_again(model: Estimator, tmp_path: Path) -> None:
    method = {"method": "full-domain", "k": 1, "lowest": {"zip": 1}, "suppression": "1/5"}
    unique = {"share": "1/50", "people": 4000, "estimator": model}
    policy = changed(PEOPLE, release=method, release__unique=unique, budget={"unbounded": "to compare"})
    made = release_to(people(200), load_policy(with_ledger(policy, tmp_path)), Destination(tmp_path / "out"))
    found = verify(tmp_path / "out")
    assert [finding for finding in found.findings if finding.outcome == "failed"] == []
    assert "population uniqueness in the file" in [finding.about for finding in found.findings]
    plain = json.loads(made.release.certificate.to_text())
    place = next(n for n, claim in enumerate(plain["claims"]) if claim["kind"] == "population uniqueness")
    assert plain["claims"][place]["parameters"]["estimate"] == model
    other = Certificate.from_json(change(plain, f"claims/{place}/parameters/estimate", "guess"))
    problem = form_of(other).check_claim(other.claims[place], other)
    assert problem is not None
    assert not problem.undecided
