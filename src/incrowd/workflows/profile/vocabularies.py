"""Vocabularies: what is publicly known about the values of a column, so that nothing has to be read off the rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from incrowd.core.domain import Type
from incrowd.core.reading import parse
from incrowd.workflows.profile.column_names import (
    AGES,
    BIRTHS,
    DISEASES,
    JOBS,
    NATIONS,
    PLACES,
    SEXES,
    STATES,
    TRADES,
    YEARS,
    spoken,
)
from incrowd.workflows.profile.facts import Facts

FIRST_DAY, LAST_DAY = "1900-01-01", "2099-12-31"
_FIRST_YEAR, _LAST_YEAR = 1800, 2200
_NEARLY = 0.95
_FEWEST = 3
_WORDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("yes and no", ("yes", "no")),
    ("yes and no", ("y", "n")),
    ("yes and no", ("ja", "nein")),
    ("yes and no", ("j", "n")),
    ("yes and no", ("oui", "non")),
    ("yes and no", ("sí", "si", "no")),
    ("yes and no", ("sì", "no")),
    ("yes and no", ("ja", "nee")),
    ("yes and no", ("tak", "nie")),
    ("yes and no", ("sim", "não")),
    ("true and false", ("wahr", "falsch")),
    ("days of the week", ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")),
    ("days of the week", ("mon", "tue", "wed", "thu", "fri", "sat", "sun")),
    ("days of the week", ("montag", "dienstag", "mittwoch", "donnerstag", "freitag", "samstag", "sonntag")),
    ("groups of blood", ("a+", "a-", "b+", "b-", "ab+", "ab-", "0+", "0-", "o+", "o-")),
)
_SEXES = (
    ("f", "m", "x", "u"),
    ("m", "w", "d", "x"),
    ("female", "male", "other", "unknown"),
    ("weiblich", "männlich", "divers", "unbekannt"),
    ("femme", "homme", "autre"),
    ("mujer", "hombre", "otro"),
    ("femmina", "maschio", "altro"),
    ("h", "f"),
    ("v", "m", "x"),
    ("k", "m"),
    ("0", "1", "2", "9"),
)
_CONTINENTS = {
    "Africa": "AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EG EH ER ET GA GH GM GN GQ GW IO KE KM LR LS LY MA MG ML MR MU "
    "MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TF TG TN TZ UG YT ZA ZM ZW",
    "Asia": "AE AF AM AZ BD BH BN BT CN CY GE HK ID IL IN IQ IR JO JP KG KH KP KR KW KZ LA LB LK MM MN MO MV MY NP OM "
    "PH PK PS QA SA SG SY TH TJ TL TM TR TW UZ VN YE",
    "Europe": "AD AL AT AX BA BE BG BY CH CZ DE DK EE ES FI FO FR GB GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD "
    "ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM UA VA",
    "North America": "AG AI AW BB BL BM BQ BS BZ CA CR CU CW DM DO GD GL GP GT HN HT JM KN KY LC MF MQ MS MX NI PA PM "
    "PR SV SX TC TT US VC VG VI",
    "Oceania": "AS AU CC CK CX FJ FM GU HM KI MH MP NC NF NR NU NZ PF PG PN PW SB TK TO TV UM VU WF WS",
    "South America": "AR BO BR BV CL CO EC FK GF GS GY PE PY SR UY VE",
    "Antarctica": "AQ",
}


@dataclass(frozen=True)
class PublicVocabulary:
    """What a policy says about a column without having seen its rows, and what is publicly known, in words."""

    section: dict[str, Any]
    known: str


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
            found = _of_numbers(facts, kind)
        case Type.DATE:
            found = _of_days(facts, period)
        case Type.BOOLEAN:
            found = PublicVocabulary({"type": "boolean"}, "true and false")
        case Type.TEXT:
            found = next(_of_texts(facts), None)
    return found


def _of_numbers(facts: Facts, kind: Type) -> PublicVocabulary | None:
    low, high = facts.low, facts.high
    if spoken(facts.name, AGES):
        section = {"type": str(kind), "bounds": ["0", "120"], "hierarchy": {"intervals": ["10", "20", "40"]}}
        return PublicVocabulary(section, "ages from 0 to 120")
    if kind is not Type.INTEGER or not isinstance(low, int) or not isinstance(high, int):
        return None
    if spoken(facts.name, YEARS | BIRTHS) and _FIRST_YEAR <= low <= high <= _LAST_YEAR:
        section = {"type": "integer", "bounds": ["1900", "2099"], "hierarchy": {"intervals": ["5", "10", "50"]}}
        return PublicVocabulary(section, "years from 1900 to 2099")
    if spoken(facts.name, SEXES) and {str(end) for end in range(low, high + 1)} <= {"0", "1", "2", "9"}:
        return PublicVocabulary({"type": "integer", "categories": ["0", "1", "2", "9"]}, "sexes of ISO 5218")
    return None


def _of_days(facts: Facts, period: tuple[str, str] | None) -> PublicVocabulary:
    declared, known = None, "the calendar from 1900 to 2099"
    if period is not None and spoken(facts.name, BIRTHS):
        known += ": the period is that of events, not of births"
    elif period is not None and not _fits(facts, period):
        known += ": many values lie outside the declared period"
    elif period is not None:
        declared, known = period, "the declared period"
    periods = ["month", "quarter", "year", *(["decade"] if declared is None else [])]
    bounds = list(declared or (FIRST_DAY, LAST_DAY))
    return PublicVocabulary({"type": "date", "bounds": bounds, "hierarchy": {"dates": periods}}, known)


def _fits(facts: Facts, period: tuple[str, str]) -> bool:
    """Whether nearly all of the different days lie in a period; a few may lie outside, and are labeled so."""
    days = [str(day) for day in (parse(value, Type.DATE) for value in facts.sample) if day is not None]
    days = days or [str(end) for end in (facts.low, facts.high) if end is not None]
    inside = sum(period[0] <= day <= period[1] for day in days)
    return inside >= _NEARLY * len(days)


def _of_texts(facts: Facts) -> Iterator[PublicVocabulary]:
    if facts.shape == "digits" and spoken(facts.name, PLACES):
        yield PublicVocabulary(
            {"type": "text", "hierarchy": {"prefix": ["3", "2", "1"]}}, "postal codes begin with the region"
        )
    yield from _of_codes(facts)
    values = [value for value, _ in facts.values or ()]
    if not values:
        return
    for known, words in _listed(facts, values):
        yield PublicVocabulary({"type": "text", "categories": list(words)}, known)
    yield from _of_countries(facts.name, values)
    spelled = min(map(len, values)) > _FEWEST or spoken(facts.name, STATES)  # two letters are many things
    region = _region(frozenset(values)) if spelled and len(values) >= _FEWEST else None
    if region is not None:
        yield PublicVocabulary({"type": "text", "categories": list(region[1])}, f"regions of {region[0]}, ISO 3166-2")


def _of_codes(facts: Facts) -> Iterator[PublicVocabulary]:
    forms = (
        (DISEASES, r"[A-Z][0-9][0-9A-Z](\.?[0-9A-Z]{1,4})?", "icd-10", "chapters of ICD-10"),
        (JOBS, r"[0-9]{3,4}", "isco-08", "groups of ISCO-08"),
        (TRADES, r"[0-9]{2}(\.?[0-9]{1,2})?", "nace-2", "sections of NACE Rev. 2"),
    )
    for words, form, name, known in forms:
        fitting = sum(bool(re.fullmatch(form, value)) for value in facts.sample)
        if spoken(facts.name, words) and fitting >= max(1, _NEARLY * len(facts.sample)):
            yield PublicVocabulary({"type": "text", "hierarchy": {"classification": name}}, known)


def _listed(facts: Facts, values: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Return the lists of words that hold all values, in the letters in which they are written."""
    sexes = [("codes of sexes", words) for words in _SEXES] if spoken(facts.name, SEXES) else []
    for known, words in (*sexes, *_WORDS):
        for written in (str.lower, str.upper, str.capitalize):
            form = tuple(dict.fromkeys(written(word) for word in words))
            if set(values) <= set(form):
                yield known, form


def _of_countries(name: str, values: Sequence[str]) -> Iterator[PublicVocabulary]:
    for key, form in (("alpha_2", "codes"), ("alpha_3", "codes"), ("name", "names")):
        if form == "codes" and not spoken(name, NATIONS):
            continue  # HR, IT and PR are departments too
        tree = _continents(key)
        known = {code for codes in tree.values() for code in codes}
        if len(values) >= _FEWEST and sum(value in known for value in values) >= _NEARLY * len(values):
            section = {"type": "text", "hierarchy": {"tree": {place: list(codes) for place, codes in tree.items()}}}
            yield PublicVocabulary(section, f"{form} of countries, ISO 3166-1, by continent")


@cache
def _continents(key: str) -> dict[str, tuple[str, ...]]:
    import pycountry

    named = {each.alpha_2: str(getattr(each, key)) for each in pycountry.countries}
    return {
        place: tuple(sorted(named[code] for code in codes.split() if code in named))
        for place, codes in _CONTINENTS.items()
    }


@cache
def _regions() -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return for every country its regions: by full code, by the code without the country, and by name."""
    import pycountry

    names = {each.alpha_2: each.name for each in pycountry.countries}
    found: dict[str, list[Any]] = {}
    for each in pycountry.subdivisions:
        if each.parent_code is None:
            found.setdefault(each.country_code, []).append(each)
    return tuple(
        (names.get(country, country), tuple(sorted(set(words))))
        for country, regions in sorted(found.items())
        for words in zip(*((each.code, each.code.partition("-")[2], each.name) for each in regions), strict=True)
    )


def _region(values: frozenset[str]) -> tuple[str, tuple[str, ...]] | None:
    """Return the country of which all values are regions: letters, since many countries number theirs."""
    if all(value.isdecimal() for value in values):
        return None
    fitting = [(country, regions) for country, regions in _regions() if values <= set(regions)]
    return min(fitting, key=lambda each: len(each[1]), default=None)
