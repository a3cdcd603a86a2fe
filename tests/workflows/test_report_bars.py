"""The bars of a published histogram, the list of winners, and the words around them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from incrowd.core.certificate import Certificate
from incrowd.methods.outcomes.histogram import Histogram
from incrowd.workflows.forms import form_of
from incrowd.workflows.report.bars import count_bars
from incrowd.workflows.report.count_steps import words_of
from incrowd.workflows.report.label import label_of
from incrowd.workflows.report.page import public_report
from tests.workflows.forms.histogram.releases import certificate, released


def told(way: str, folder: Path) -> tuple[Certificate, Histogram]:
    out = released(way, folder)
    found = Certificate.from_json(certificate(out))
    outcome = form_of(found).reopen(found, out / "data.csv")
    assert isinstance(outcome, Histogram)
    return found, outcome


def test_exact_and_noisy_bars_look_different_and_are_told_in_words(tmp_path: Path) -> None:
    found, outcome = told("blended", tmp_path)
    drawn = count_bars(found, outcome)
    assert drawn is not None
    assert drawn.count('class="bar"') == int(outcome.exact.sum())  # type: ignore[union-attr]
    assert drawn.count('class="bar noisy"') == len(outcome) - int(outcome.exact.sum())  # type: ignore[union-attr]
    assert "Full bars are exact counts" in drawn
    assert 'role="img"' in drawn


@pytest.mark.parametrize(
    ("way", "words"),
    [
        ("suppressed", "Every count above zero is exact"),
        ("Laplace", "Every count carries noise"),
        ("blended and rounded", "does not tell which is which"),
    ],
)
def test_what_bars_mean_is_said(way: str, words: str, tmp_path: Path) -> None:
    assert words in str(count_bars(*told(way, tmp_path)))


def test_of_many_bins_the_largest_are_shown_in_their_order(tmp_path: Path) -> None:
    found, _ = told("suppressed", tmp_path)
    many = Histogram(pa.table({"bin": [f"b{n:02d}" for n in range(60)], "count": [n * 7 % 60 for n in range(60)]}))
    drawn = str(count_bars(found, many))
    assert "The 24 largest of 60 bins" in drawn
    assert drawn.count("<rect") == 24
    assert count_bars(found, Histogram(many.table.slice(0, 0))) is None


def test_the_label_says_what_was_published(tmp_path: Path) -> None:
    found, outcome = told("blended for good", tmp_path)
    answers = {each.question: each.full for each in label_of(found).answers}
    assert "Counts of 5 or more are exact, smaller ones carry noise" in answers["What was published?"]
    assert "the count of that person's bin" in answers["Can anyone tell that you are in it?"]
    assert "Noise on small counts" in public_report(found, outcome)


def test_winners_are_listed(tmp_path: Path) -> None:
    out = released("most common", tmp_path)
    found = Certificate.from_json(certificate(out))
    page = public_report(found, form_of(found).reopen(found, out / "data.csv"))
    assert "Choose the most common" in page
    assert "3 most common bins" in page


def test_other_steps_have_no_words_here() -> None:
    assert words_of({"step": "order"}) is None
