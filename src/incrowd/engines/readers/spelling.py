"""Spelling: how numbers and days are written in a text file, and what is written instead when it is read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from incrowd.core.domain import Type
from incrowd.engines.readers.date_formats import DateFormat, date_formats
from incrowd.errors import InvalidParameter

DECIMALS = (".", ",")
_MARKS = {".": r"\.", ",": ",", "'": "['\u2019]", " ": "[ \u00a0\u202f]"}
"""Thousands marks, and what is taken for one: a space may be one that does not break."""
_NUMBER = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,2})?$"
_ROUND_THOUSANDS = r"^[+-]?[1-9][0-9]{0,2}\.000$"
_NO_NUMBER = "?"


@dataclass(frozen=True)
class Spelling:
    """How numbers and days are written: the decimal mark, the thousands mark, formats of dates.

    Cells of columns that are declared as numbers or dates are written anew, as every other source spells them; cells
    of other columns stay as they are.  A cell that is no number by this spelling is never read as one by another: it
    gets a question mark in front.  A mark counts only where it parts groups of three digits.  Where no decimal mark is
    declared it is a point; a whole number such as 1.000 is then not read, since it may be one or a thousand.

    >>> german = Spelling(decimal=",", thousands=".")
    >>> german.plain(pa.array(["1.234,5", "0,5", "1.5", "1.23"]), Type.DECIMAL).to_pylist()
    ['1234.5', '0.5', '?1.5', '?1.23']
    >>> Spelling(dates=("%d.%m.%Y",)).plain(pa.array(["31.12.2024", "2024-12-31"]), Type.DATE).to_pylist()
    ['2024-12-31', '2024-12-31']
    >>> Spelling().plain(pa.array(["1.000", "17.0"]), Type.INTEGER).to_pylist()
    ['?1.000', '17.0']
    """

    decimal: str | None = None
    thousands: str | None = None
    dates: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.decimal is not None and self.decimal not in DECIMALS:
            raise InvalidParameter('decimal is the mark before the decimals: "." or ",".')
        if self.thousands is not None and self.thousands not in _MARKS:
            raise InvalidParameter("thousands is the mark between groups of three digits: one of . , ' and a space.")
        if self.thousands == self._point:
            other = "," if self.thousands == "." else "."
            raise InvalidParameter(
                f'thousands and decimal cannot both be "{self.thousands}": write decimal: "{other}" too, or leave '
                "thousands out."
            )
        date_formats(self.dates)

    @property
    def _point(self) -> str:
        return self.decimal or "."

    def plain(self, texts: pa.Array, kind: Type) -> pa.Array:
        """Return texts of a column of a declared type as they are read everywhere."""
        if kind is Type.DATE and self.dates:
            return self._days(texts)
        if kind not in (Type.INTEGER, Type.DECIMAL):
            return texts
        if self.decimal is not None or self.thousands is not None:
            return self._respelled(texts)
        if kind is Type.DECIMAL or not pc.any(pc.match_substring(texts, ".000")).as_py():
            return texts
        doubtful = _matching(pc.utf8_trim_whitespace(texts), _ROUND_THOUSANDS)
        return pc.if_else(doubtful, _crossed_out(texts), texts)

    def numbers(self, texts: pa.Array) -> pa.Array:
        """Return which texts are numbers by this spelling.

        >>> Spelling(",").numbers(pa.array(["0,5", "0.5", "5"])).to_pylist()
        [True, False, True]
        """
        return _matching(texts, self._pattern)

    def example(self, kind: Type) -> str:
        """Return a value as this spelling writes it.

        >>> Spelling(decimal=",", thousands=".", dates=("%d.%m.%Y",)).example(Type.DECIMAL)
        '1.234,5'
        """
        if kind is Type.DATE:
            return DateFormat(self.dates[0]).example if self.dates else "2024-12-31"
        grouped = f"1{self.thousands}234" if self.thousands else "42"
        whole = {Type.INTEGER: grouped, Type.DECIMAL: f"{grouped}{self._point}5", Type.BOOLEAN: "yes or no"}
        return whole.get(kind, "text")

    @property
    def settings(self) -> Mapping[str, str]:
        """What is declared, for the record."""
        told = {"decimal": self.decimal, "thousands": self.thousands, "dates": ", ".join(self.dates) or None}
        return {name: value for name, value in told.items() if value is not None}

    @property
    def words(self) -> tuple[str, ...]:
        """What is declared, in a few words.

        >>> Spelling(decimal=",", dates=("%d.%m.%Y",)).words
        ('decimal comma', 'dates as %d.%m.%Y')
        """
        mark = {".": "point", ",": "comma", "'": "apostrophe", " ": "space"}
        decimal = () if self.decimal is None else (f"decimal {mark[self.decimal]}",)
        thousands = () if self.thousands is None else (f"a {mark[self.thousands]} between thousands",)
        return (*decimal, *thousands, *((f"dates as {' or '.join(self.dates)}",) if self.dates else ()))

    def _respelled(self, texts: pa.Array) -> pa.Array:
        trimmed = pc.utf8_trim_whitespace(texts)
        good = self.numbers(trimmed)
        plain = trimmed
        if self.thousands is not None:
            plain = pc.replace_substring_regex(plain, _MARKS[self.thousands], "")
        plain = pc.replace_substring(plain, self._point, ".")
        misread = pc.and_(pc.invert(good), _matching(trimmed, _NUMBER))
        return pc.if_else(good, plain, pc.if_else(misread, _crossed_out(trimmed), texts))

    def _days(self, texts: pa.Array) -> pa.Array:
        trimmed = pc.utf8_trim_whitespace(texts)
        return pc.coalesce(*(each.days(trimmed) for each in self._formats), texts)

    @cached_property
    def _formats(self) -> tuple[DateFormat, ...]:
        return date_formats(self.dates)

    @cached_property
    def _pattern(self) -> str:
        point, mark = re.escape(self._point), _MARKS.get(self.thousands or "")
        grouped = f"|[1-9][0-9]{{0,2}}(?:{mark}[0-9]{{3}})+" if mark else ""
        return rf"^[+-]?(?:(?:[0-9]+{grouped})(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]{{1,2}})?$"


PLAIN = Spelling()


def spelled_as_declared(texts: pa.Array, kind: Type, spelling: Spelling) -> pa.Array:
    """Return a column of text as its declared type is read everywhere; each different text is looked at once.

    >>> spelled_as_declared(pa.array(["0,5", None, "0,5"]), Type.DECIMAL, Spelling(",")).to_pylist()
    ['0.5', None, '0.5']
    """
    if kind in (Type.TEXT, Type.BOOLEAN) or spelling == PLAIN:
        return spelling.plain(texts, kind)
    coded = texts.dictionary_encode()
    return spelling.plain(coded.dictionary, kind).take(coded.indices)


def _matching(texts: pa.Array, pattern: str) -> pa.Array:
    return pc.fill_null(pc.match_substring_regex(texts, pattern), False)


def _crossed_out(texts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(_NO_NUMBER, texts, "")
