"""The catalog has every sentence in every language, with the same places to fill in."""

from __future__ import annotations

import re

import pytest

from incrowd.drawing.catalog import BASE, languages, reviewed, sentences

PLACE = re.compile(r"\{(\w+)\}")
PAGES = ("survey",)


@pytest.mark.parametrize("page", PAGES)
def test_every_language_has_every_sentence_with_the_same_places(page: str) -> None:
    original = sentences(page)[BASE]
    for language, texts in sentences(page).items():
        assert set(texts) == set(original)
        for name, text in texts.items():
            assert text.strip() == text != "", (language, name)
            assert sorted(PLACE.findall(text)) == sorted(PLACE.findall(original[name])), (language, name)


def test_the_catalog_stays_small_and_says_that_translations_are_unreviewed() -> None:
    assert sum(len(sentences(page)[BASE]) for page in PAGES) <= 120
    assert list(languages()) == ["en", "de", "fr", "es", "nl"]
    assert reviewed() == {BASE}
