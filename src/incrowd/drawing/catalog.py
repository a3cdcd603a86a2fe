"""Catalog: sentences for respondents and data subjects in several languages, from one file."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

BASE = "en"
"""The language of the originals: all others are translations, which nobody has reviewed unless the catalog says so."""


@cache
def _content() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(files("incrowd.drawing").joinpath("catalog.json").read_text(encoding="utf-8"))
    return content


def languages() -> dict[str, str]:
    """Return the languages of the catalog, each by its code, with its own name.

    >>> list(languages())
    ['en', 'de', 'fr', 'es', 'nl']
    """
    return dict(_content()["languages"])


def reviewed() -> frozenset[str]:
    """Return the languages whose sentences a speaker has reviewed."""
    return frozenset(_content()["reviewed"])


def sentences(prefix: str) -> dict[str, dict[str, str]]:
    """Return the sentences of one kind of page: by language, then by name.

    >>> sentences("survey")["de"]["send"]
    'Senden'
    """
    section = _content()["sentences"][prefix]
    return {language: {name: texts[language] for name, texts in section.items()} for language in languages()}


def document(prefix: str) -> dict[str, Any]:
    """Return what a page needs to speak each language: names, sentences, and which of them were reviewed."""
    return {"languages": languages(), "reviewed": sorted(reviewed()), "sentences": sentences(prefix)}
