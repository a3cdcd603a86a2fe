"""A histogram is verified from its certificate and its file alone, and no forged one passes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from incrowd.workflows.verify.verify import verify
from tests.released import failed, problems, rewrite
from tests.workflows.release.histograms import WAYS, certificate, released, step, undecided

Change = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize("way", WAYS)
def test_what_was_released_is_verified_down_to_its_last_claim(way: str, tmp_path: Path) -> None:
    out = released(way, tmp_path)
    found = verify(out)
    assert found.passed, failed(found)
    assert undecided(out) == []
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "<svg" in page
    assert "<script" not in page


def lower_delta(plain: dict[str, Any]) -> None:
    plain["claims"][0]["parameters"]["delta"] = "1/1000000"
    plain["guarantee"]["delta"] = "1/1000000"


def other_k(plain: dict[str, Any]) -> None:
    for claim in plain["claims"]:
        claim["parameters"]["k"] += 3


def smaller_epsilon(plain: dict[str, Any]) -> None:
    """Claim and accounting agree on less than the noise costs."""
    plain["claims"][0]["parameters"]["epsilon"] = "0.9"
    for amounts in ("spent", "total"):
        plain["accounting"][amounts]["epsilon"] = "0.9"


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


def rounded_to_nothing(plain: dict[str, Any]) -> None:
    step(plain, "publish counts")["round"] = 0


def only_some_bins(plain: dict[str, Any]) -> None:
    step(plain, "count")["listed"] = "chosen"


def strange_noise(plain: dict[str, Any]) -> None:
    step(plain, "noise when small")["noise"] = "a new law"


def fewer_rows_of_each(plain: dict[str, Any]) -> None:
    step(plain, "keep rows of each person")["rows"] = 1


FORGED: list[tuple[str, Change]] = [
    ("blended", lower_delta),
    ("suppressed", lower_delta),
    ("blended", other_k),
    ("Laplace", smaller_epsilon),
    ("Gaussian", smaller_epsilon),
    ("Gaussian for people", smaller_epsilon),
    ("Laplace on a sample for people", smaller_epsilon),
    ("unknown bins", threshold_that_shows_anyone),
    ("unknown bins", threshold_without_delta),
    ("Laplace", rounded_to_nothing),
    ("Laplace", only_some_bins),
    ("blended", only_some_bins),
    ("blended", strange_noise),
    ("blended for people", fewer_rows_of_each),
]


@pytest.mark.parametrize(("way", "change"), FORGED)
def test_certificates_whose_parts_agree_on_something_untrue_fail(way: str, change: Change, tmp_path: Path) -> None:
    out = released(way, tmp_path)
    plain = certificate(out)
    change(plain)
    rewrite(out, plain)
    assert problems(out)
