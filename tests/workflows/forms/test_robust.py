"""A biased sample: the accountant, the second derivation, and brute force over unequal coins agree."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.accounting.blending import robust
from incrowd.accounting.ledger.ledger import Ledger
from incrowd.core.loss import Crowd, RobustlySampled
from incrowd.errors import SampleReused
from incrowd.workflows.forms.robust import biased_delta, published
from incrowd.workflows.protect import Destination, release_to
from incrowd.workflows.verify import verify
from tests.policies import PEOPLE, changed, people, written
from tests.released import Folder, failed, release_into

RATES = {"low": "0.05", "high": "0.1", "irregular": 2}
ROBUST: dict[str, Any] = {
    "release__rate": None,
    "release__k": 30,
    "release__target": {"delta": "1e-6"},
    "release__robust": RATES,
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return release_into(tmp_path_factory.mktemp("robust") / "release", **ROBUST)


@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 25),
    st.integers(1, 9),
    st.integers(0, 5),
    st.floats(0.01, 3.0),
)
def test_both_derivations_agree(k: int, tenths: int, irregular: int, epsilon: float) -> None:
    high = Fraction(tenths, 10)
    if irregular and irregular >= k - 1:
        irregular = 0
    bias = robust.Bias(high / 2, high, irregular, Fraction(1) if irregular else high)
    loss = RobustlySampled(bias.low, bias.high, bias.irregular, bias.max_rate, Crowd(k))
    assert biased_delta(loss, epsilon) == pytest.approx(robust.delta(k, 0, bias, epsilon), rel=1e-8, abs=1e-14)


def test_no_choice_of_unequal_rates_is_worse_than_what_is_derived() -> None:
    loss = RobustlySampled(Fraction(1, 10), Fraction(3, 10), 0, Fraction(3, 10), Crowd(3))
    derived = biased_delta(loss, 0.4)
    assert derived is not None
    worst = 0.0
    for size in range(2, 7):
        for rates in product((0.1, 0.2, 0.3), repeat=size):
            others = np.ones(1)
            for rate in rates[1:]:
                others = np.append(others * (1 - rate), 0.0) + np.append(0.0, others * rate)
            absent, present = np.append(others, 0.0), np.append(0.0, others)
            mixed = rates[0] * present + (1 - rates[0]) * absent
            for left, right in ((mixed, absent), (absent, mixed)):
                tail = left[3:] - math.exp(0.4) * right[3:]
                rare = left[:3].sum() - math.exp(0.4) * right[:3].sum()
                worst = max(worst, float(np.maximum(0, tail).sum() + max(0, rare)))
    assert 0.3 * derived < worst <= derived * (1 + 1e-9)


def test_the_published_theorem_is_the_accountant_s() -> None:
    bias = robust.Bias(Fraction(1, 10), Fraction(3, 25), 5, Fraction(1))
    epsilon, delta = published(RobustlySampled(bias.low, bias.high, 5, bias.max_rate, Crowd(50)))
    assert epsilon == pytest.approx(robust.zero_knowledge_epsilon(0, bias), rel=1e-9)
    assert delta == pytest.approx(robust.theorem2_delta(50, bias), rel=1e-9)


def test_a_release_of_a_biased_sample_is_verified_with_all_its_claims(made: Folder) -> None:
    found = verify(made.out, ledger=Ledger.open(made.ledger))
    assert found.passed
    assert found.complete
    kinds = [claim.kind for claim in found.certificate.claims]
    assert kinds[:2] == ["approximate differential privacy", "zero-knowledge with respect to robust sampling"]
    assert {"crowd-blending", "k-anonymity"} <= set(kinds)
    assert "sample that others drew" in (made.out / "report.html").read_text()


def test_a_second_release_of_a_biased_sample_is_refused(made: Folder) -> None:
    policy = written(changed(PEOPLE, **ROBUST), made.path, "again.yaml")
    with pytest.raises(SampleReused, match="incrowd coarsen"):
        release_to(people(), policy, Destination(made.path / "again"))


@pytest.mark.parametrize(
    ("place", "value", "about"),
    [
        (("claims", 0, "parameters", "epsilon"), "0.5", "claim: approximate differential privacy"),
        (("claims", 0, "parameters", "irregular"), 0, "claim: approximate differential privacy"),
        (("claims", 0, "parameters", "adjacency"), "replace-one", "claim: approximate differential privacy"),
        (("claims", 1, "parameters", "high"), "1/20", "claim: zero-knowledge with respect to robust sampling"),
        (
            ("claims", 2, "parameters", "delta"),
            "1e-9",
            "claim: zero-knowledge with respect to robust sampling, as published",
        ),
        (("chain", 0, "irregular"), 0, "claim: approximate differential privacy"),
        (("chain", 0, "drawn"), "here", "claim: approximate differential privacy"),
        (("chain", 0, "rate"), "1/20", "claim: approximate differential privacy"),
        (("guarantee", "loss", "irregular"), 0, "claim: approximate differential privacy"),
    ],
)
def test_a_changed_number_is_found(
    made: Folder, tmp_path: Path, place: tuple[str | int, ...], value: object, about: str
) -> None:
    copy = made.copied(tmp_path / "copy")
    copy.tamper(place, lambda _: value)
    assert about in failed(verify(copy.out))


def test_a_smaller_epsilon_fails_even_where_the_whole_certificate_tells_it(made: Folder, tmp_path: Path) -> None:
    copy = made.copied(tmp_path / "copy")
    for place in (("accounting", "spent", "epsilon"), ("claims", 0, "parameters", "epsilon")):
        copy.tamper(place, lambda _: "0.9")
    said = {finding.about: finding.why for finding in verify(copy.out).findings}
    assert said["claim: approximate differential privacy"].startswith("its delta is")
