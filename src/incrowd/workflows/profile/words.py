"""Words: what the names of columns give away."""

from __future__ import annotations

import itertools
import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


CODES = _words("zip zipcode postal postcode postalcode plz phone telephone fax mobile iban account tract fips")
"""Numbers by these names are codes: nobody adds them up."""

NAMING = _words(
    "id ids uuid guid ssn passport license licence email mail phone telephone fax mobile iban account mrn nhs "
    "name names firstname lastname surname fullname forename username login address street url ip device plate"
)
"""Columns by these names tell who somebody is."""

KNOWN = _words(
    "age birth birthday birthdate dob yob born sex gender zip zipcode postal postcode postalcode plz city town village "
    "municipality county state province region district tract country nationality citizenship race ethnicity ethnic "
    "language marital married education school degree occupation profession job employer industry workclass household "
    "children date day month year admitted admission discharged discharge visit height weight hospital ward"
)
"""Columns by these names are known to neighbors, colleagues and registers."""

SECRET = _words(
    "diagnosis diagnoses disease illness icd condition symptom symptoms procedure treatment therapy medication drug "
    "drugs prescription allergy hiv test result results lab score grade grades salary income wage wages pay charge "
    "charges cost costs price amount balance debt loan credit crime offense conviction sentence religion party "
    "political orientation disability pregnancy addiction alcohol smoking genotype blood outcome"
)
"""Columns by these names are what people would rather keep to themselves."""


def spoken(name: str, words: frozenset[str]) -> str | None:
    """Return the first word of a column's name that is one of `words`.

    >>> spoken("dateOfBirth", KNOWN), spoken("PATIENT_ID", NAMING), spoken("identity", NAMING)
    ('date', 'id', None)
    """
    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    parts = [part for part in re.split(r"[^a-z]+", split.lower()) if part]
    joined = ["".join(pair) for pair in itertools.pairwise(parts)]
    return next((part for part in (*parts, *joined) if part in words), None)
