"""Vocabularies: what is publicly known about the values of a column, so that a draft needs no values from the data."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from incrowd.core.domain import Type
from incrowd.core.reading import parse
from incrowd.workflows.profile.column_names import (
    AGES,
    BIRTHS,
    DISEASES,
    JOBS,
    MARITAL,
    NATIONS,
    PLACES,
    SEXES,
    STATES,
    TRADES,
    YEARS,
    spoken,
    word_lists,
)
from incrowd.workflows.profile.facts import Facts

FIRST_DAY, LAST_DAY = "1900-01-01", "2099-12-31"
_FIRST_YEAR, _LAST_YEAR = 1800, 2200
_NEARLY = 0.95
_FEWEST, _MONTHS = 3, 12
_LONG = 20
"""Years from which on a column has intervals of several."""
_POSTAL = re.compile(
    r"[0-9]{2}-[0-9]{3}|[0-9]{3} [0-9]{2}|[0-9]{4}-[0-9]{3}|[0-9]{4} ?[A-Z]{2}|[A-Z]{1,2}[0-9][0-9A-Z]? ?[0-9][A-Z]{2}"
)
_NUTS = re.compile(r"[A-Z]{2}[0-9A-Z]{0,3}")
_LANGUAGES = (
    *("de", "fr", "es", "it", "nl", "pt", "pl", "sv", "da", "nb", "cs", "fi", "tr"),
    *("el", "hu", "ro", "sk", "bg", "hr", "sl", "uk", "ru", "et", "lv", "lt"),
)
_VOCABULARIES = word_lists("vocabularies")
_CALLED = {"sexes": SEXES, "marital states": MARITAL}
"""Lists that count only for columns that are called so: their words mean other things elsewhere."""


@dataclass(frozen=True)
class PublicVocabulary:
    """The section of a column that does not depend on the data, and what is publicly known, as text."""

    section: dict[str, Any]
    public: str


def vocabulary_of(facts: Facts, kind: Type, period: tuple[str, str] | None = None) -> PublicVocabulary | None:
    """Return what is publicly known about a column, or None; values only decide which vocabulary fits.

    >>> from incrowd.measures.risk.sketch import TupleSpread
    >>> spread = TupleSpread(90, 3, 0, True, 0.0)
    >>> age = Facts("age", 0, spread, (Type.INTEGER, Type.TEXT), 31, 57, (2, 2), "digits", None)
    >>> vocabulary_of(age, Type.INTEGER).section["bounds"]
    ['0', '120']
    """
    match kind:
        case Type.INTEGER | Type.DECIMAL:
            vocabulary = _of_numbers(facts, kind, period)
        case Type.DATE:
            vocabulary = _of_days(facts, period)
        case Type.BOOLEAN:
            vocabulary = PublicVocabulary({"type": "boolean"}, "true and false")
        case Type.TEXT:
            vocabulary = next(_of_texts(facts), None)
    return vocabulary


def _of_numbers(facts: Facts, kind: Type, period: tuple[str, str] | None) -> PublicVocabulary | None:
    low, high = facts.low, facts.high
    if spoken(facts.name, AGES):
        section = {"type": str(kind), "bounds": ["0", "120"], "hierarchy": {"intervals": ["10", "20", "40"]}}
        return PublicVocabulary(section, "ages from 0 to 120")
    if kind is not Type.INTEGER or not isinstance(low, int) or not isinstance(high, int):
        return None
    if spoken(facts.name, YEARS | BIRTHS) and _FIRST_YEAR <= low <= high <= _LAST_YEAR:
        first, last = _years(facts.name, (low, high), period)
        widths = {"hierarchy": {"intervals": ["5", "10", "50"]}} if int(last) - int(first) >= _LONG else {}
        return PublicVocabulary({"type": "integer", "bounds": [first, last], **widths}, f"years from {first} to {last}")
    if spoken(facts.name, SEXES) and {str(end) for end in range(low, high + 1)} <= {"0", "1", "2", "9"}:
        return PublicVocabulary({"type": "integer", "categories": ["0", "1", "2", "9"]}, "sexes of ISO 5218")
    return None


def _years(name: str, years: tuple[int, int], period: tuple[str, str] | None) -> tuple[str, str]:
    """Return the years that a column can have: births end with the declared period or now, events lie in the period."""
    if spoken(name, BIRTHS):
        return FIRST_DAY[:4], _last_birth(period)[:4]
    low, high = years
    if period is not None and int(period[0][:4]) <= low <= high <= int(period[1][:4]):
        return period[0][:4], period[1][:4]
    return FIRST_DAY[:4], LAST_DAY[:4]


def _last_birth(period: tuple[str, str] | None) -> str:
    """Return the last day on which somebody in the data can have been born, as far as is public."""
    today = f"{date.today().year}-12-31"  # noqa: DTZ011 - a year, in any time zone
    return today if period is None else max(period[1], FIRST_DAY)


def _of_days(facts: Facts, period: tuple[str, str] | None) -> PublicVocabulary:
    declared, public = None, "the calendar from 1900 to 2099"
    last = LAST_DAY
    if spoken(facts.name, BIRTHS):
        last = _last_birth(period)
        public = f"births from 1900 to {last[:4]}"
    elif period is not None and not _fits(facts, period):
        public += ": many values lie outside the declared period"
    elif period is not None:
        declared, public = period, "the declared period"
    periods = ["month", "quarter", "year", *(["decade"] if declared is None else [])]
    bounds = list(declared or (FIRST_DAY, last))
    return PublicVocabulary({"type": "date", "bounds": bounds, "hierarchy": {"dates": periods}}, public)


def _fits(facts: Facts, period: tuple[str, str]) -> bool:
    """Whether nearly all of the different days lie in a period; a few may lie outside, and are labeled so."""
    days = [str(day) for day in (parse(value, Type.DATE) for value in facts.sample) if day is not None]
    days = days or [str(end) for end in (facts.low, facts.high) if end is not None]
    inside = sum(period[0] <= day <= period[1] for day in days)
    return inside >= _NEARLY * len(days)


def _of_texts(facts: Facts) -> Iterator[PublicVocabulary]:
    if spoken(facts.name, PLACES) and (facts.shape == "digits" or _postal(facts.sample)):
        yield PublicVocabulary(
            {"type": "text", "hierarchy": {"prefix": ["3", "2", "1"]}}, "postal codes begin with the region"
        )
    yield from _of_codes(facts)
    values = [value for value, _ in facts.values or ()]
    if not values:
        return
    for public, words in _listed(facts, values):
        yield PublicVocabulary({"type": "text", "categories": list(words)}, public)
    yield from _of_countries(facts.name, values)
    spelled = min(map(len, values)) > _FEWEST or spoken(facts.name, STATES)  # two letters are many things
    region = _region(frozenset(values)) if spelled and len(values) >= _FEWEST else None
    if region is not None:
        yield PublicVocabulary({"type": "text", "categories": list(region[1])}, f"regions of {region[0]}, ISO 3166-2")


def _postal(sample: Sequence[str]) -> bool:
    """Whether texts are written as postal codes with a hyphen, a space or letters: 00-950, 104 31, 1234 AB, SW1A 1AA.

    >>> _postal(["00-950", "31-002"]), _postal(["high", "low"])
    (True, False)
    """
    return bool(sample) and sum(bool(_POSTAL.fullmatch(text)) for text in sample) >= _NEARLY * len(sample)


def _of_codes(facts: Facts) -> Iterator[PublicVocabulary]:
    forms = (
        (DISEASES, r"[A-Z][0-9][0-9A-Z](\.?[0-9A-Z]{1,4})?", "icd-10", "chapters of ICD-10"),
        (JOBS, r"[0-9]{3,4}", "isco-08", "groups of ISCO-08"),
        (TRADES, r"[0-9]{2}(\.?[0-9]{1,2})?", "nace-2", "sections of NACE Rev. 2"),
    )
    if spoken(facts.name, frozenset({"nuts"})) and facts.sample and all(map(_NUTS.fullmatch, facts.sample)):
        yield PublicVocabulary({"type": "text", "hierarchy": {"prefix": ["4", "3", "2"]}}, "codes of NUTS, by prefix")
    if spoken(facts.name, frozenset({"isced"})) and {value for value, _ in facts.values or (("", 0),)} <= set(
        "012345678"
    ):
        yield PublicVocabulary({"type": "text", "categories": list("012345678")}, "levels of ISCED 2011")
    for words, form, name, public in forms:
        fitting = sum(bool(re.fullmatch(form, value)) for value in facts.sample)
        if spoken(facts.name, words) and fitting >= max(1, _NEARLY * len(facts.sample)):
            yield PublicVocabulary({"type": "text", "hierarchy": {"classification": name}}, public)


def _listed(facts: Facts, values: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Return the lists of words that hold all values, in the letters in which they are written."""
    for name, lists in _VOCABULARIES.items():
        if not spoken(facts.name, _CALLED.get(name, frozenset())) and name in _CALLED:
            continue
        for words, written in product(lists, (str.lower, str.upper, str.capitalize)):
            form = tuple(dict.fromkeys(written(word.replace("_", " ")) for word in words.split()))
            if set(values) <= set(form):
                yield "codes of sexes" if name == "sexes" else name, form
    if _FEWEST <= len(values) <= _MONTHS and all(value.removesuffix(".").isalpha() for value in values):
        yield from _of_calendar(frozenset(values))


def _of_calendar(values: frozenset[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the days of the week or the months that hold all values, as CLDR writes them in a language."""
    for language, (what, words) in product(("en", *_LANGUAGES), enumerate(("days", "months"))):
        for form in _calendar_words(language)[what:][::2]:
            for written in (str, str.capitalize, str.upper):
                names = tuple(dict.fromkeys(map(written, form)))
                if values <= set(names):
                    yield f"{'days of the week' if words == 'days' else words} in CLDR ({language})", names
                    return


@cache
def _calendar_words(language: str) -> tuple[tuple[str, ...], ...]:
    """Return the days and the months of a language, in full and short by turns; none without the package Babel."""
    try:
        from babel import Locale
    except ImportError:
        return ()
    own = _own_words(language)
    if own is None:  # they are those of another language
        locale = Locale(language)
        own = {"days": locale.days, "months": locale.months}
    lists = [
        (own[what].get(use) or {}).get(width) or own[what]["format"][width]
        for width, use in product(("wide", "abbreviated"), ("stand-alone", "format"))
        for what in ("days", "months")
    ]
    return tuple(tuple(str(names[place]) for place in sorted(names)) for names in lists)


def _own_words(language: str) -> dict[str, Any] | None:
    """Return the words that the package Babel has in the file of a language; to merge it with all others takes long.

    The form of that file is Babel's own affair: None if it is not the one that is known here.
    """
    try:
        from babel.localedata import resolve_locale_filename

        with Path(resolve_locale_filename(language)).open("rb") as file:
            words = pickle.load(file)  # noqa: S301 - a part of the package
        return words if _complete(words["days"], range(7)) and _complete(words["months"], range(1, 13)) else None
    except (ImportError, OSError, EOFError, pickle.PickleError, AttributeError, LookupError, TypeError, ValueError):
        return None


def _complete(uses: Mapping[str, Any], numbers: range) -> bool:
    """Whether words are by use and width, and then by number, as Babel's public words are."""
    lists = [(uses.get(use) or {}).get(width) for use in ("stand-alone", "format") for width in ("wide", "abbreviated")]
    return all(uses["format"].values()) and all(words is None or set(words) == set(numbers) for words in lists)


def common_labels(name: str, groups: Sequence[Sequence[str]]) -> tuple[str, ...] | None:
    """Return for each group of synonyms a member, such that one list of words holds them all, or None.

    >>> common_labels("sexo", [["Masculino", "masc.", "M"], ["Feminino", "F"]])
    ('M', 'F')
    """
    for kind, lists in _VOCABULARIES.items():
        if not spoken(name, _CALLED.get(kind, frozenset())) and kind in _CALLED:
            continue
        for words, written in product(lists, (str.upper, str.capitalize, str.lower)):
            form = {written(word) for word in words.split()}
            labels = tuple(next((text for text in group if text in form), "") for group in groups)
            if all(labels):
                return labels
    return None


def _of_countries(name: str, values: Sequence[str]) -> Iterator[PublicVocabulary]:
    for key, form in (("alpha_2", "codes"), ("alpha_3", "codes"), ("name", "names")):
        if form == "codes" and not spoken(name, NATIONS):
            continue  # HR, IT and PR are departments too
        tree = continents(key)
        codes_known = {code for codes in tree.values() for code in codes}
        if len(values) >= _FEWEST and sum(value in codes_known for value in values) >= _NEARLY * len(values):
            section = {"type": "text", "hierarchy": {"tree": {place: list(codes) for place, codes in tree.items()}}}
            yield PublicVocabulary(section, f"{form} of countries, ISO 3166-1, by continent")
    if len(values) >= _FEWEST and spoken(name, NATIONS):
        yield from _of_countries_elsewhere(values)


def _of_countries_elsewhere(values: Sequence[str]) -> Iterator[PublicVocabulary]:
    """Yield the countries by their names in another language, by CLDR; without the package Babel there are none."""
    for language in _LANGUAGES:
        tree = countries_named_in(language)
        names = {name for countries in tree.values() for name in countries}
        if sum(value in names for value in values) >= _NEARLY * len(values):
            section = {"type": "text", "hierarchy": {"tree": {place: list(names) for place, names in tree.items()}}}
            yield PublicVocabulary(section, f"names of countries in CLDR ({language}), by continent")


@cache
def countries_named_in(language: str) -> dict[str, tuple[str, ...]]:
    """Return the names of countries in a language by continent; none without the package Babel, or the language."""
    try:
        from babel import Locale, UnknownLocaleError
    except ImportError:
        return {}
    try:
        names = Locale.parse(language).territories
    except (UnknownLocaleError, ValueError):
        return {}
    return {
        place: tuple(sorted({str(names[code]) for code in codes.split() if code in names}))
        for place, codes in word_lists("continents").items()
    }


@cache
def continents(key: str) -> dict[str, tuple[str, ...]]:
    """Return countries by continent, by an attribute that pycountry has of them."""
    import pycountry

    named = {country.alpha_2: str(getattr(country, key)) for country in pycountry.countries}
    return {
        place: tuple(sorted(named[code] for code in codes.split() if code in named))
        for place, codes in word_lists("continents").items()
    }


@cache
def _regions() -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return for every country its regions: by full code, by the code without the country, and by name."""
    import pycountry

    names = {region.alpha_2: region.name for region in pycountry.countries}
    by_country: dict[str, list[Any]] = {}
    for region in pycountry.subdivisions:
        if region.parent_code is None:
            by_country.setdefault(region.country_code, []).append(region)
    return tuple(
        (names.get(country, country), tuple(sorted(set(words))))
        for country, regions in sorted(by_country.items())
        for words in zip(
            *((region.code, region.code.partition("-")[2], region.name) for region in regions), strict=True
        )
    )


def _region(values: frozenset[str]) -> tuple[str, tuple[str, ...]] | None:
    """Return the country of which all values are regions: letters, since many countries number theirs."""
    if all(value.isdecimal() for value in values):
        return None
    fitting = [(country, regions) for country, regions in _regions() if values <= set(regions)]
    return min(fitting, key=lambda pair: len(pair[1]), default=None)
