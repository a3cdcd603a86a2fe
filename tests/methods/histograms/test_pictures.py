"""The bars of published counts, the list of winners, and the words around them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from incrowd.core.certificate import Certificate
from incrowd.methods.histograms import suppressed
from incrowd.methods.shared.outcome import Histogram
from incrowd.verifier.judge import statement_of
from incrowd.workflows.certificates import read_certificate
from incrowd.workflows.registry import check_of, picture_of
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release_to
from incrowd.workflows.report.page import public_report
from tests.policies import PEOPLE, changed, people

BINS: dict[str, Any] = {"columns": ["sex", "age"], "levels": {"age": 2}}
SAMPLE: dict[str, Any] = {"rate": "1/5", "epsilon": 1, "delta": "1e-4"}
BLENDED: dict[str, Any] = {"method": "blended-histogram", **BINS, **SAMPLE, "noise_epsilon": 1, "flag": True}
OPEN: dict[str, Any] = {"method": "blended-histogram", **BINS, "k": 5, "noise_epsilon": 1}
WAYS: dict[str, dict[str, Any]] = {
    "suppressed": {"release": {"method": "suppressed-histogram", **BINS, **SAMPLE}},
    "blended": {"release": BLENDED},
    "blended for good": {"release": OPEN, "budget": {"unbounded": "published since 1990"}},
    "blended and rounded": {"release": {**BLENDED, "round": 5, "flag": False}},
    "Laplace": {"release": {"method": "private-histogram", **BINS, "epsilon": 1}},
    "most common": {"release": {"method": "most-common", **BINS, "epsilon": 1, "top": 3}},
}


def opened(way: str, folder: Path) -> tuple[Certificate, Any]:
    out, policy = folder / "out", changed(PEOPLE, ledger=f"sqlite:///{folder}/ledger.sqlite", **WAYS[way])
    release_to(people(1500), policy, Destination(out, "csv"))
    found = read_certificate(out)
    return found, check_of(found.method.name).reopen(statement_of(found), (out / "data.csv",))


def drawn(certificate: Certificate, output: Any) -> str:
    own = picture_of(certificate.method.name)
    assert own is not None
    return str(own.draw(statement_of(certificate), output))


def test_exact_and_noisy_bars_look_different_and_are_told_in_words(tmp_path: Path) -> None:
    found, output = opened("blended", tmp_path)
    picture = drawn(found, output)
    exact = int(output.exact.sum())
    assert picture.count('class="bar"') == exact
    assert picture.count('class="bar noisy"') == len(output) - exact
    assert "Full bars are exact counts" in picture
    assert 'role="img"' in picture


@pytest.mark.parametrize(
    ("way", "words"),
    [
        ("suppressed", "Every count above zero is exact"),
        ("Laplace", "Every count carries noise"),
        ("blended and rounded", "does not show which is which"),
    ],
)
def test_what_bars_mean_is_said(way: str, words: str, tmp_path: Path) -> None:
    assert words in drawn(*opened(way, tmp_path))


def test_of_many_bins_the_largest_are_shown_in_their_order(tmp_path: Path) -> None:
    found, _ = opened("suppressed", tmp_path)
    many = Histogram(pa.table({"bin": [f"b{n:02d}" for n in range(60)], "count": [n * 7 % 60 for n in range(60)]}))
    picture = drawn(found, many)
    assert "The 24 largest of 60 bins" in picture
    assert picture.count("<rect") == 24
    assert suppressed.PICTURE.draw(statement_of(found), Histogram(many.table.slice(0, 0))) is None


def test_the_label_says_what_was_published(tmp_path: Path) -> None:
    page = public_report(*opened("blended for good", tmp_path))
    assert "Counts of 5 or more are exact, smaller ones carry noise" in page
    assert "the count of that person&#39;s bin" in page
    assert "Noise on small counts" in page


def test_winners_are_listed(tmp_path: Path) -> None:
    page = public_report(*opened("most common", tmp_path))
    assert "Choose the most common" in page
    assert "3 most common bins" in page
