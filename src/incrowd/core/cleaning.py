"""Cleaning: how the cells of a column are rewritten before anything else reads them, by declared rules.

Each cell is rewritten on its own, by rules that are stated before a row is read, so a guarantee about rows holds for
the rewritten rows as it does for the written ones.  Rules that were suggested from the rows are data-dependent until
the data holder confirms them.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa
import pyarrow.compute as pc

from incrowd.core.domain import DECLARED, Provenance, Type, listed
from incrowd.core.reading import as_dictionary, canonical
from incrowd.core.terms import KeyedText
from incrowd.errors import InvalidParameter

ENCODINGS = ("cp1252", "latin-1", "cp1250", "iso8859-15", "mac-roman", "cp850")
"""Encodings as which UTF-8 is commonly misread."""
_MOST_UNITS, _LONGEST_UNIT = 20, 20
_SPACES = "[ \t\u00a0\u2007\u2009\u202f]"


class LetterCase(StrEnum):
    """The letters in which all texts of a column are written."""

    LOWER = "lower"
    UPPER = "upper"


class UnicodeForm(StrEnum):
    """A normal form of Unicode: NFC composes accents, NFKC also replaces compatibility characters."""

    NFC = "nfc"
    NFKC = "nfkc"


class CleaningRule(KeyedText):
    """A kind of rule, as a certificate names it."""

    MEND = "mend", "misread encodings are mended"
    FORM = "form", "one Unicode form"
    TRIM = "trim", "outer and repeated spaces removed"
    MISSING = "missing", "words for a missing value"
    CASE = "case", "one letter case"
    UNITS = "units", "units removed from numbers"
    MARKS = "marks", "marks of numbers declared"
    SPELLINGS = "spellings", "several spellings of one label"


@dataclass(frozen=True)
class Cleaning:
    """The rules of a column, applied to each cell in the order of the fields.

    `mend` is the encoding as which UTF-8 was misread.  `missing` are words for a missing value.  `units` stand before
    or after a number.  `decimal` and `thousands` are the marks of its numbers, where they differ from the source's.
    `spellings` maps a label to the other texts that mean the same.  Words and spellings are compared after the rules
    before them.

    >>> places = Cleaning(trim=True, missing=("s/d",), spellings=(("Bonfim", ("BONFIM", "Bonfim (Porto)")),))
    >>> places.texts(pa.array([" Bonfim ", "BONFIM", "s/d", "Centro"])).to_pylist()
    ['Bonfim', 'Bonfim', None, 'Centro']
    >>> Cleaning(units=("€",)).texts(pa.array(["96,00 €", "€ 5", "seven"])).to_pylist()
    ['96,00', '5', 'seven']
    >>> Cleaning(mend="cp1252").texts(pa.array(["privÃ©", "privé"])).to_pylist()
    ['privé', 'privé']
    """

    mend: str | None = None
    form: UnicodeForm | None = None
    trim: bool = False
    missing: tuple[str, ...] = ()
    case: LetterCase | None = None
    units: tuple[str, ...] = ()
    decimal: str | None = None
    thousands: str | None = None
    spellings: tuple[tuple[str, tuple[str, ...]], ...] = ()
    provenance: Provenance = DECLARED

    def __post_init__(self) -> None:
        if not self.rules:
            raise InvalidParameter("clean needs at least one rule, such as trim: true.")
        if self.mend is not None and self.mend not in ENCODINGS:
            raise InvalidParameter(f"mend names the encoding as which UTF-8 was misread: {', '.join(ENCODINGS)}.")
        if len(self.units) > _MOST_UNITS or any(not 0 < len(unit) <= _LONGEST_UNIT for unit in self.units):
            raise InvalidParameter(f"units are at most {_MOST_UNITS} texts of at most {_LONGEST_UNIT} characters.")
        if any(character.isdigit() for unit in self.units for character in unit):
            raise InvalidParameter("a unit holds no digits: it would be taken for part of the number.")
        self._check_spellings()

    def _check_spellings(self) -> None:
        sources = Counter(source for label, others in self.spellings for source in {label, *others})
        twice = [source for source, times in sources.items() if times > 1]
        if twice:
            raise InvalidParameter(
                f"these texts of spellings mean two things: {listed(sorted(twice))}. A label or spelling belongs to "
                "one label."
            )
        both = [word for word in self.missing if word in sources]
        if both:
            raise InvalidParameter(f"these texts are missing values and spellings too: {listed(both)}. Keep one.")

    @property
    def rules(self) -> tuple[CleaningRule, ...]:
        """The kinds of rules, in the order in which they are applied."""
        declared = {
            CleaningRule.MEND: self.mend,
            CleaningRule.FORM: self.form,
            CleaningRule.TRIM: self.trim,
            CleaningRule.MISSING: self.missing,
            CleaningRule.CASE: self.case,
            CleaningRule.UNITS: self.units,
            CleaningRule.MARKS: self.decimal or self.thousands,
            CleaningRule.SPELLINGS: self.spellings,
        }
        return tuple(rule for rule, value in declared.items() if value)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of spellings: what a certificate may name; the spellings themselves are texts from rows."""
        return tuple(label for label, _ in self.spellings)

    def check_type(self, kind: Type, name: str) -> None:
        """Refuse rules that mean nothing for a type."""
        number = kind in (Type.INTEGER, Type.DECIMAL)
        if (self.units or self.decimal or self.thousands) and not number:
            raise InvalidParameter(f"units and marks are those of numbers, and {name!r} is of type {kind}.")
        if self.spellings and kind is not Type.TEXT:
            raise InvalidParameter(f"spellings are those of text, and {name!r} is of type {kind}.")

    def texts(self, texts: pa.Array) -> pa.Array:
        """Return plain texts as the rules rewrite them; a word for a missing value becomes null."""
        if self.mend is not None:
            texts = _mapped(texts, _mender(self.mend))
        if self.form is not None:
            form = self.form.upper()
            texts = _mapped(texts, lambda text: unicodedata.normalize(form, text))  # type: ignore[arg-type]
        if self.trim:
            texts = pc.utf8_trim_whitespace(pc.replace_substring_regex(texts, r"\s+", " "))
        if self.missing:
            absent = pc.is_in(pc.utf8_trim_whitespace(texts), value_set=pa.array(self.missing, pa.string()))
            texts = pc.if_else(absent, pa.scalar(None, pa.string()), texts)
        if self.case is not None:
            texts = pc.utf8_lower(texts) if self.case is LetterCase.LOWER else pc.utf8_upper(texts)
        if self.units:
            texts = self._without_units(texts)
        return self._spelled(texts) if self.spellings else texts

    def column(self, array: pa.Array) -> pa.Array:
        """Return a plain column as text that the rules rewrote, each different text once."""
        if pa.types.is_floating(array.type):
            array = pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)
        if not (pa.types.is_string(array.type) or pa.types.is_dictionary(array.type)):
            array = canonical(array)
        values, indices = as_dictionary(array)
        cleaned = pa.concat_arrays([self.texts(values), pa.nulls(1, pa.string())])
        return cleaned.take(pa.array(indices))

    def _without_units(self, texts: pa.Array) -> pa.Array:
        units = "|".join(re.escape(unit) for unit in sorted(self.units, key=len, reverse=True))
        number = r"([+-]?[0-9.,'’][0-9.,'’\s\x{a0}\x{2007}\x{2009}\x{202f}]*)"
        texts = pc.replace_substring_regex(texts, rf"^\s*{number}(?:{_SPACES})*(?:{units})\s*$", r"\1")
        texts = pc.replace_substring_regex(texts, rf"^\s*([+-]?)(?:{units})(?:{_SPACES})*{number}$", r"\1\2")
        return pc.if_else(pc.match_substring_regex(texts, rf"^\s*{number}\s*$"), pc.utf8_trim_whitespace(texts), texts)

    def _spelled(self, texts: pa.Array) -> pa.Array:
        table = {source: label for label, others in self.spellings for source in others}
        place = pc.index_in(texts, value_set=pa.array(list(table), pa.string()))
        return pc.coalesce(pa.array(list(table.values()), pa.string()).take(place), texts)


def _mapped(texts: pa.Array, rewrite: Callable[[str], str]) -> pa.Array:
    return pa.array([None if text is None else rewrite(text) for text in texts.to_pylist()], pa.string())


def _mender(encoding: str) -> Callable[[str], str]:
    def mended(text: str) -> str:
        if text.isascii():
            return text
        try:
            return text.encode(encoding).decode("utf-8")
        except UnicodeError:
            return text

    return mended
