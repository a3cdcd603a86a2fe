"""Spelling: how numbers and days are written in a text file, and the one way in which the engine reads them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import pyarrow as pa
import pyarrow.compute as pc

from incrowd.core.cleaning import Cleaning
from incrowd.core.domain import Type
from incrowd.core.table import SourceOptions
from incrowd.errors import InvalidParameter

_MOST_FORMATS, _LONGEST = 8, 40  # each format is tried on each value
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_SHORT = "(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
_LONG = (
    "(?i:january|february|march|april|may|june|july|august|september|october|november|december)"  # in English, always
)
_DAY_PARTS = {"Y": "year", "m": "month", "b": "month", "B": "month", "d": "day"}
_NUMBERS = {
    "Y": ("[0-9]{4}", "[0-9]{4}"),
    "m": ("[0-9]{1,2}", "[0-9]{2}"),
    "d": ("[0-9]{1,2}", "[0-9]{2}"),
    "H": ("(?:[01]?[0-9]|2[0-3])", "(?:[01][0-9]|2[0-3])"),
    "I": ("(?:0?[1-9]|1[0-2])", "(?:0[1-9]|1[0-2])"),
    "M": ("[0-5]?[0-9]", "[0-5][0-9]"),
    "S": ("[0-5]?[0-9]", "[0-5][0-9]"),
    "f": ("[0-9]{1,6}", "[0-9]{6}"),
}
"""The pattern of a directive where another character separates it from other digits, and where none does."""
_WORDS = {"b": _SHORT, "B": _LONG, "p": "(?i:am|pm)"}
_WIDTHS = {"Y": (4, 4), "f": (1, 6)}
_EXAMPLES = {"Y": "2024", "m": "12", "d": "31", "b": "Dec", "B": "December", "H": "23", "I": "11", "M": "59"} | {
    "S": "00",
    "f": "000000",
    "p": "PM",
}
_TOKEN = re.compile(r"%(.)|([^%]+)", re.DOTALL)


@dataclass(frozen=True)
class DateFormat:
    """One way to write a day, by directives of strptime; a time of day may follow and is cut off.

    Year, month and day each occur once, and the year has its century, so no text is ambiguous.  A leading zero may be
    left out where another character separates the digits from others.  Names of months are English.

    >>> DateFormat("%d.%m.%Y").days(pa.array(["31.12.2024", "1.2.2024", "2024-12-31"])).to_pylist()
    ['2024-12-31', '2024-02-01', None]
    >>> DateFormat("%d.%m.%y")
    Traceback (most recent call last):
    ...
    incrowd.errors.InvalidParameter: the date format '%d.%m.%y' has a year without its century ...
    """

    text: str

    def __post_init__(self) -> None:
        tokens, name = _TOKEN.findall(self.text), f"the date format {self.text!r}"
        whole = "".join(f"%{letter}" if letter else literal for letter, literal in tokens) == self.text
        if not self.text or len(self.text) > _LONGEST or not whole:
            raise InvalidParameter(f"{name} is invalid: write one such as %d.%m.%Y, of at most {_LONGEST} characters.")
        if re.search(r"%[yx]", self.text):
            raise InvalidParameter(
                f"{name} has a year without its century (%y), which is ambiguous. Write the year as %Y."
            )
        unknown = [letter for letter, _ in tokens if letter and letter not in {*_NUMBERS, *_WORDS}]
        if unknown or any(character.isdigit() for _, literal in tokens for character in literal):
            raise InvalidParameter(
                f"{name} has an unknown directive. Use %Y %m %b %B %d, %H %I %M %S %f %p, and signs between them."
            )
        for part in ("year", "month", "day"):
            times = sum(_DAY_PARTS.get(letter) == part for letter, _ in tokens)
            if times != 1:
                raise InvalidParameter(
                    f"{name} names the {part} {'twice' if times else 'nowhere'}: name each of %d %m %Y once."
                )

    @property
    def example(self) -> str:
        """The last day of 2024 in this format.

        >>> DateFormat("%m/%d/%Y").example
        '12/31/2024'
        """
        return re.sub(r"%(.)", lambda match: _EXAMPLES[match[1]], self.text)

    @cached_property
    def shape(self) -> tuple[tuple[int, int] | str, ...]:
        """The form of texts in this format: literals, words, and numbers of consecutive digits."""
        shape: list[tuple[int, int] | str] = []
        for letter, literal in _TOKEN.findall(self.text):
            widths = _WIDTHS.get(letter, (1, 2)) if letter in _NUMBERS else None
            if widths is None:
                shape.append(literal or ("%b" if letter in "bB" else "%p"))
            elif shape and isinstance(shape[-1], tuple):
                most = _WIDTHS.get(letter, (2, 2))[1]
                shape[-1] = (shape[-1][1] + most, shape[-1][1] + most)
            else:
                shape.append(widths)
        return tuple(shape)

    def days(self, texts: pa.Array) -> pa.Array:
        """Return the days as YYYY-MM-DD, null where a text has another format; the calendar is not checked."""
        parts = pc.extract_regex(texts, self._pattern)
        year, month, day = (pc.struct_field(parts, name) for name in ("year", "month", "day"))
        if not re.search("%m", self.text):
            place = pc.index_in(pc.utf8_lower(pc.utf8_slice_codeunits(month, 0, 3)), value_set=pa.array(_MONTHS))
            month = pc.cast(pc.add(place, 1), pa.string())
        month, day = (pc.utf8_lpad(part, 2, "0") for part in (month, day))
        return pc.binary_join_element_wise(year, month, day, "-")

    @cached_property
    def _pattern(self) -> str:
        """The format as a regular expression; digits that touch each other have their full width."""
        tokens = _TOKEN.findall(self.text)
        numbers = [letter in _NUMBERS for letter, _ in tokens]
        written = []
        for place, (letter, literal) in enumerate(tokens):
            touching = letter in _NUMBERS and True in (*numbers[place - 1 : place], *numbers[place + 1 : place + 2])
            matched = _WORDS.get(letter) or (_NUMBERS[letter][touching] if letter else re.escape(literal))
            name = _DAY_PARTS.get(letter)
            written.append(f"(?P<{name}>{matched})" if name else matched)
        return f"^{''.join(written)}$"


def date_formats(texts: tuple[str, ...]) -> tuple[DateFormat, ...]:
    """Return the formats, of which no text can fit two; a text in ISO 8601 is always read.

    >>> date_formats(("%d/%m/%Y", "%m/%d/%Y"))
    Traceback (most recent call last):
    ...
    incrowd.errors.InvalidParameter: the date formats '%d/%m/%Y' and '%m/%d/%Y' are ambiguous: ...
    """
    if len(texts) > _MOST_FORMATS:
        raise InvalidParameter(f"at most {_MOST_FORMATS} date formats can be declared.")
    formats = tuple(DateFormat(text) for text in texts)
    for one, other in combinations(formats, 2):
        if len(one.shape) == len(other.shape) and _alike(one, other):
            raise InvalidParameter(
                f"the date formats {one.text!r} and {other.text!r} are ambiguous: the same text would be two days. "
                "Leave one of them out."
            )
    for date in formats:
        if not date.text.startswith(_ISO.text) and len(date.shape) >= len(_ISO.shape) and _alike(date, _ISO):
            raise InvalidParameter(
                f"the date format {date.text!r} and {_ISO.text}, which is always read, are ambiguous: the same text "
                "would be two days. Rewrite such dates in the file."
            )
    return formats


def _alike(one: DateFormat, other: DateFormat) -> bool:
    """Whether one text can fit both formats, or fit one and begin like the other."""
    return all(
        a == b if isinstance(a, str) or isinstance(b, str) else max(a[0], b[0]) <= min(a[1], b[1])
        for a, b in zip(one.shape, other.shape, strict=False)
    )


_ISO = DateFormat("%Y-%m-%d")


DECIMALS = (".", ",")
_MARKS = {".": r"\.", ",": ",", "'": "['\u2019]", " ": "[ \u00a0\u202f]"}
"""Thousands marks, and the characters that count as one: a space may be a no-break space."""
_NUMBER = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,2})?$"
_ROUND_THOUSANDS = r"^[+-]?[1-9][0-9]{0,2}\.000$"
_NO_NUMBER = "?"


@dataclass(frozen=True)
class Spelling:
    """How numbers and days are written: the decimal mark, the thousands mark, formats of dates.

    Cells of columns that are declared as numbers or dates are rewritten as every other source spells them; cells of
    other columns are unchanged.  A cell that is not a number in this spelling is never read as one in another: it gets
    a question mark in front.  A thousands mark counts only between groups of three digits.  The decimal mark is a point
    unless another is declared; a whole number such as 1.000 is then not read, since it may mean one or a thousand.

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
            raise InvalidParameter('decimal is the sign before the decimals: "." or ",".')
        if self.thousands is not None and self.thousands not in _MARKS:
            raise InvalidParameter("thousands is the separator of groups of three digits: one of . , ' and a space.")
        if self.thousands == self._point:
            other = "," if self.thousands == "." else "."
            raise InvalidParameter(
                f'thousands and decimal cannot both be "{self.thousands}": write decimal: "{other}" too, or leave '
                "thousands out."
            )
        date_formats(self.dates)

    @classmethod
    def of(cls, options: SourceOptions) -> Spelling:
        """Return the spelling that the options of a source declare."""
        return cls(options.decimal, options.thousands, options.dates)

    @property
    def _point(self) -> str:
        return self.decimal or "."

    def plain(self, texts: pa.Array, kind: Type) -> pa.Array:
        """Return the texts of a column of a declared type, rewritten in the plain spelling."""
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
        """Return which texts are numbers in this spelling.

        >>> Spelling(",").numbers(pa.array(["0,5", "0.5", "5"])).to_pylist()
        [True, False, True]
        """
        return _matching(texts, self._pattern)

    def example(self, kind: Type) -> str:
        """Return an example of a value in this spelling.

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
        declared = {"decimal": self.decimal, "thousands": self.thousands, "dates": ", ".join(self.dates) or None}
        return {name: value for name, value in declared.items() if value is not None}

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
        return pc.coalesce(*(date.days(trimmed) for date in self._formats), texts)

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
    """Return a column of text in the plain spelling of its declared type; each different text is rewritten once.

    >>> spelled_as_declared(pa.array(["0,5", None, "0,5"]), Type.DECIMAL, Spelling(",")).to_pylist()
    ['0.5', None, '0.5']
    """
    was_coded = pa.types.is_dictionary(texts.type)
    if not was_coded and (kind in (Type.TEXT, Type.BOOLEAN) or spelling == PLAIN):
        return spelling.plain(texts, kind)
    coded = texts.dictionary_encode()
    values = coded.dictionary
    plain = spelling.plain(values, kind)
    return texts if was_coded and plain is values else plain.take(coded.indices)


@dataclass(frozen=True)
class ColumnCleaner:
    """Rewrites cells by the rules of their columns, then in the plain spelling of their declared types.

    >>> from incrowd.core.cleaning import Cleaning
    >>> cleaner = ColumnCleaner({"fee": Cleaning(units=("€",), decimal=",")}, {"fee": Type.DECIMAL}, PLAIN)
    >>> cleaner.column("fee", pa.array(["96,50 €", "7"])).to_pylist()
    ['96.50', '7']
    """

    rules: Mapping[str, Cleaning] | None = None
    types: Mapping[str, Type] | None = None
    spelling: Spelling = PLAIN

    @classmethod
    def of(cls, options: SourceOptions) -> ColumnCleaner:
        """Return what the options of a source declare."""
        return cls(options.clean, options.types, Spelling.of(options))

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a plain batch of a source whose cells are typed; only columns with rules are rewritten."""
        if not self.rules or not set(self.rules) & set(batch.schema.names):
            return batch
        columns = [
            self.column(name, column) if name in self.rules else column
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        ]
        return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)

    def column(self, name: str, column: pa.Array, stored: pa.Array | None = None) -> pa.Array:
        """Return one column, cleaned, then spelled as its type; cells that are `stored` as numbers are spelled so."""
        kind = (self.types or {}).get(name, Type.TEXT)
        clean, spelling = (self.rules or {}).get(name), self.spelling
        cleaned = column if clean is None else clean.column(column)
        if not (pa.types.is_string(column.type) or pa.types.is_dictionary(column.type)):
            return cleaned
        if clean is not None and (clean.decimal is not None or clean.thousands is not None):
            spelling = Spelling(clean.decimal, clean.thousands, spelling.dates)
        spelled = spelled_as_declared(cleaned, kind, spelling)
        return spelled if stored is None or spelled is cleaned else pc.if_else(stored, cleaned, spelled)


UNCLEANED = ColumnCleaner()


def _matching(texts: pa.Array, pattern: str) -> pa.Array:
    return pc.fill_null(pc.match_substring_regex(texts, pattern), False)


def _crossed_out(texts: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(_NO_NUMBER, texts, "")
