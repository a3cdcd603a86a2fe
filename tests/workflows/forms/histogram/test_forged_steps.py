"""Certificates of counts whose parts agree on something that is not true fail, whatever else they say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from incrowd.workflows.verify import verify
from tests.workflows.forms.histogram.releases import certificate, failures, released, rewrite, step

Change = Callable[[dict[str, Any]], object]
PRIVATE = "claim: approximate differential privacy"


def without_delta(plain: dict[str, Any]) -> None:
    del plain["claims"][0]["parameters"]["delta"]


def smaller_loss(plain: dict[str, Any]) -> None:
    plain["guarantee"]["loss"]["epsilon"] = "1/2"


def threshold_that_shows_anyone(plain: dict[str, Any]) -> None:
    """A δ of 1 pays for a threshold of 2, and the claim goes on to say a millionth."""
    step(plain, "threshold").update(delta="1", least=2)


def threshold_without_delta(plain: dict[str, Any]) -> None:
    """As if the threshold merely saved space: but its bins were found in the rows."""
    step(plain, "threshold").update(delta="0", least=1)
    plain["guarantee"].update(loss={"loss": "laplace", "scale": "1", "sensitivity": 1}, delta="0")
    plain["accounting"]["spent"]["delta"] = plain["accounting"]["total"]["delta"] = "0"
    plain["claims"][0]["kind"] = "pure differential privacy"
    del plain["claims"][0]["parameters"]["delta"]


def kept_small_counts(plain: dict[str, Any]) -> None:
    step(plain, "suppress counts")["below"] = 1


def only_some_bins(plain: dict[str, Any]) -> None:
    step(plain, "count")["listed"] = "those chosen"


def drafted_in_other_words(plain: dict[str, Any]) -> None:
    step(plain, "recode")["columns"][0]["provenance"] = "Drafted from the rows"


def rounded_to_nothing(plain: dict[str, Any]) -> None:
    step(plain, "publish counts")["round"] = 0


def nearer_than_it_is(plain: dict[str, Any]) -> None:
    step(plain, "select")["within"] = 0


def sampled(plain: dict[str, Any]) -> None:
    step(plain, "sample")["rate"] = "1/2"


FORGED: list[tuple[str, Change, str]] = [
    ("unknown bins", without_delta, PRIVATE),
    ("unknown bins", smaller_loss, "steps"),
    ("unknown bins", threshold_that_shows_anyone, "steps"),
    ("unknown bins", threshold_that_shows_anyone, PRIVATE),
    ("unknown bins", threshold_without_delta, "steps"),
    ("suppressed", kept_small_counts, "steps"),
    ("blended", only_some_bins, "steps"),
    ("Laplace", only_some_bins, "steps"),
    ("suppressed", drafted_in_other_words, "steps"),
    ("Laplace", rounded_to_nothing, "counts in the file"),
    ("most common", nearer_than_it_is, "steps"),
    ("most common", sampled, "steps"),
]


@pytest.mark.parametrize(("way", "change", "about"), FORGED)
def test_steps_that_cannot_carry_the_claim_fail(way: str, change: Change, about: str, tmp_path: Path) -> None:
    out = released(way, tmp_path)
    plain = certificate(out)
    change(plain)
    rewrite(out, plain)
    assert about in failures(out)


def test_noise_of_a_strange_law_is_not_called_verified(tmp_path: Path) -> None:
    out = released("blended", tmp_path)
    plain = certificate(out)
    step(plain, "noise when small")["noise"] = "a new law"
    rewrite(out, plain)
    assert not verify(out).complete
