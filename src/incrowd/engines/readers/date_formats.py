"""Date formats: the part of strptime's language that says which day it is, once and for all."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import pyarrow as pa
import pyarrow.compute as pc

from incrowd.errors import InvalidParameter

MOST_FORMATS, LONGEST = 8, 40
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
"""What matches a directive where something parts it from other digits, and where nothing does."""
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
    """One way to write a day, by directives of strptime; a time of day may follow, and is cut off.

    Year, month and day are each there once, and the year has its century: nothing has to be guessed.  Digits may have
    no leading zero where something parts them from others.  Names of months are English.

    >>> DateFormat("%d.%m.%Y").days(pa.array(["31.12.2024", "1.2.2024", "2024-12-31"])).to_pylist()
    ['2024-12-31', '2024-02-01', None]
    >>> DateFormat("%d.%m.%y")
    Traceback (most recent call last):
    ...
    incrowd.errors.InvalidParameter: the date format '%d.%m.%y' has a year without its century ...
    """

    text: str

    def __post_init__(self) -> None:
        tokens, told = _TOKEN.findall(self.text), f"the date format {self.text!r}"
        if not self.text or len(self.text) > LONGEST or "".join(_joined(each) for each in tokens) != self.text:
            raise InvalidParameter(f"{told} is none: write one such as %d.%m.%Y, of at most {LONGEST} characters.")
        if re.search(r"%[yx]", self.text):
            raise InvalidParameter(f"{told} has a year without its century (%y): which one is meant, no file can tell.")
        unknown = [letter for letter, _ in tokens if letter and letter not in {*_NUMBERS, *_WORDS}]
        if unknown or any(character.isdigit() for _, literal in tokens for character in literal):
            raise InvalidParameter(
                f"{told} holds what is not read here: there are %Y %m %b %B %d, %H %I %M %S %f %p, and signs between."
            )
        for part in ("year", "month", "day"):
            times = sum(_DAY_PARTS.get(letter) == part for letter, _ in tokens)
            if times != 1:
                raise InvalidParameter(
                    f"{told} names the {part} {'twice' if times else 'nowhere'}: name each of %d %m %Y once."
                )

    @property
    def example(self) -> str:
        """The last day of 2024 in this format.

        >>> DateFormat("%m/%d/%Y").example
        '12/31/2024'
        """
        return re.sub(r"%(.)", lambda found: _EXAMPLES[found[1]], self.text)

    @cached_property
    def shape(self) -> tuple[tuple[int, int] | str, ...]:
        """What texts of this format look like: literals, words, and how many digits stand in a row."""
        found: list[tuple[int, int] | str] = []
        for letter, literal in _TOKEN.findall(self.text):
            widths = _WIDTHS.get(letter, (1, 2)) if letter in _NUMBERS else None
            if widths is None:
                found.append(literal or ("%b" if letter in "bB" else "%p"))
            elif found and isinstance(found[-1], tuple):
                most = _WIDTHS.get(letter, (2, 2))[1]
                found[-1] = (found[-1][1] + most, found[-1][1] + most)
            else:
                found.append(widths)
        return tuple(found)

    def days(self, texts: pa.Array) -> pa.Array:
        """Return the days as YYYY-MM-DD, null where a text is not of this format; the calendar is not asked."""
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
    """Return the formats, of which no text can be two; what begins as ISO 8601 does is always read.

    >>> date_formats(("%d/%m/%Y", "%m/%d/%Y"))
    Traceback (most recent call last):
    ...
    incrowd.errors.InvalidParameter: the date formats '%d/%m/%Y' and '%m/%d/%Y' cannot be told apart: ...
    """
    if len(texts) > MOST_FORMATS:
        raise InvalidParameter(f"at most {MOST_FORMATS} date formats are told apart.")
    formats = tuple(DateFormat(text) for text in texts)
    for one, other in combinations(formats, 2):
        if len(one.shape) == len(other.shape) and _alike(one, other):
            raise InvalidParameter(
                f"the date formats {one.text!r} and {other.text!r} cannot be told apart: the same text would be two "
                "days. Leave one of them out."
            )
    for each in formats:
        if not each.text.startswith(_ISO.text) and len(each.shape) >= len(_ISO.shape) and _alike(each, _ISO):
            raise InvalidParameter(
                f"the date format {each.text!r} cannot be told from {_ISO.text}, which is always read: the same text "
                "would be two days. Write such dates anew in the file."
            )
    return formats


def _alike(one: DateFormat, other: DateFormat) -> bool:
    """Return whether a text can be of both formats, or begin as both do if one is longer."""
    return all(
        a == b if isinstance(a, str) or isinstance(b, str) else max(a[0], b[0]) <= min(a[1], b[1])
        for a, b in zip(one.shape, other.shape, strict=False)
    )


def _joined(token: tuple[str, str]) -> str:
    letter, literal = token
    return f"%{letter}" if letter else literal


_ISO = DateFormat("%Y-%m-%d")
