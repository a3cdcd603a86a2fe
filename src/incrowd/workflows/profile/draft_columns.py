"""Columns of a draft: their sections in a policy; values from the data are marked."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Any

from incrowd.core.domain import Type
from incrowd.core.schema import Role
from incrowd.engines.readers.conventions import CURRENCIES
from incrowd.workflows.profile.column_names import MONEY, spoken
from incrowd.workflows.profile.profile import ColumnProfile
from incrowd.workflows.profile.vocabularies import vocabulary_of

DERIVED = {"derived": "rows"}
"""The mark of values that come from the data."""

_STEPS = 20  # the finest intervals cut a range into about so many
_LEVELS = 3
_FEW = 5
_LONGEST_CODE = 20
_PREFIXES = 4
_LONG_TIME = 20
_SHORTEST = 3
_MOST_CATEGORIES = 100
_BARE = ("role", "type")
_UNLISTED = "text that cannot be generalized is not released: list categories or give a hierarchy to release it"


@dataclass(frozen=True)
class DraftColumn:
    """A column of a draft: its section, the reason for its role, and what is publicly known about its values."""

    name: str
    section: dict[str, Any]
    why: str
    public: str | None = None

    @property
    def released(self) -> bool:
        """Whether its values are released."""
        return self.section["role"] not in ("identifier", "withheld")

    @property
    def marked(self) -> bool:
        """Whether something in it comes from the data, without a public source."""
        parts = (self.section, self.section.get("hierarchy", {}))
        return self.unconfirmed or any("derived" in part and "public" not in part for part in parts)

    @property
    def unconfirmed(self) -> bool:
        """Whether its cleaning was suggested from the data, and the data holder did not confirm it."""
        clean = self.section.get("clean", {})
        return "derived" in clean and "confirmed" not in clean

    def cleaned(self, clean: dict[str, Any]) -> DraftColumn:
        """Return the same column with rules that clean its cells, if it is released."""
        return replace(self, section=self.section | {"clean": clean}) if self.released else self

    def held_back(self, why: str) -> DraftColumn:
        """Return the same column, not released, with its section."""
        return replace(self, section=self.section | {"role": "withheld"}, why=why)

    def vouched(self, source: str) -> DraftColumn:
        """Return the same column with a public source after every mark."""
        rule = self.section.get("hierarchy")
        section = self.section | ({} if rule is None else {"hierarchy": _vouched(rule, source)})
        return replace(self, section=_vouched(section, source))


def _vouched(part: dict[str, Any], source: str) -> dict[str, Any]:
    """Return a part with the source right after its mark."""
    vouched: dict[str, Any] = {}
    for key, value in part.items():
        vouched[key] = value
        if key == "derived":
            vouched["public"] = source
    return vouched


def public_column(column: ColumnProfile, period: tuple[str, str] | None = None) -> DraftColumn:
    """Return the section of a column without values from its rows; text that is in no list is open.

    Numbers without public knowledge have widths by their name alone, and no bounds: a rule, not a list of values.
    """
    if column.role is Role.IDENTIFIER:
        why = "a name or an id, by its column name or by a unique value in nearly every row"
        return DraftColumn(column.name, {"role": "identifier"}, column.identity.kind if column.identity else why)
    vocabulary = vocabulary_of(column.facts, column.type, period)
    role = {"role": str(column.role)}
    if vocabulary is not None:
        return DraftColumn(column.name, role | vocabulary.section, column.why_role, vocabulary.public)
    section: dict[str, Any] = role | {"type": str(column.type)}
    if column.type in (Type.INTEGER, Type.DECIMAL):
        widths = ["1000", "10000", "50000"] if _is_money(column) else ["10", "100", "1000"]
        public = "widths that fit any number: nothing comes from the data"
        return DraftColumn(column.name, section | {"hierarchy": {"intervals": widths}}, column.why_role, public)
    if _is_code(column) and _shared(column.facts.sample) < _SHORTEST:
        public = "first characters: nothing comes from the data"
        return DraftColumn(column.name, section | {"hierarchy": {"prefix": ["3", "2", "1"]}}, column.why_role, public)
    return DraftColumn(column.name, section, column.why_role)


def drafted_column(column: ColumnProfile, period: tuple[str, str] | None = None) -> DraftColumn:
    """Return the column of a draft, with marked values from the data where nothing is publicly known.

    Bounds are rounded outward, so that they do not disclose the oldest person or the highest bill.
    """
    column_draft = public_column(column, period)
    if not column_draft.released or vocabulary_of(column.facts, column.type, period) is not None:
        return column_draft
    section = {key: value for key, value in column_draft.section.items() if key != "hierarchy"}
    if column.type in (Type.INTEGER, Type.DECIMAL):
        section |= number_rule(column.facts.low, column.facts.high, column.type)
    else:
        section |= _text(column)
    if len(section) > len(_BARE):
        return DraftColumn(column.name, section, column.why_role)
    why = "no row has a value" if column.facts.values is not None else _UNLISTED
    return DraftColumn(column.name, {"role": "withheld"}, why)


def number_rule(low: Any, high: Any, kind: Type) -> dict[str, Any]:
    """Return bounds and nested intervals around numbers from `low` to `high`.

    >>> number_rule(3, 97, Type.INTEGER)["bounds"], number_rule(3, 97, Type.INTEGER)["hierarchy"]["intervals"]
    (['0', '99'], ['5', '10', '20'])
    """
    if low is None or high is None:
        return {}
    lowest, highest = Decimal(str(low)), Decimal(str(high))
    whole = kind is Type.INTEGER
    span = highest - lowest + (1 if whole else 0)
    if span <= 0 or (whole and span <= _FEW):
        return {"bounds": [_number(lowest), _number(highest)], **DERIVED}
    width = max(_round_number(span / _STEPS), Decimal(2) if whole else Decimal(0))
    start = _floor(lowest / width) * width
    end = (_floor(highest / width) + 1) * width - 1 if whole else -_floor(-highest / width) * width
    widths = [width * 2**step for step in range(_LEVELS) if width * 2**step < end - start]
    bounds: dict[str, Any] = {"bounds": [_number(start), _number(end)], **DERIVED}
    return bounds | (
        {"hierarchy": {"intervals": [_number(step_width) for step_width in widths], **DERIVED}} if widths else {}
    )


def date_rule(low: Any, high: Any) -> dict[str, Any]:
    """Return bounds of whole years, and the periods of the calendar.

    >>> date_rule(date(2025, 2, 3), date(2025, 11, 30))["bounds"]
    ['2025-01-01', '2025-12-31']
    """
    if not isinstance(low, date) or not isinstance(high, date):
        return {}
    periods = ["month", "quarter", "year", *(["decade"] if high.year - low.year >= _LONG_TIME else [])]
    bounds = [f"{low.year:04d}-01-01", f"{high.year:04d}-12-31"]
    return {"bounds": bounds, **DERIVED, "hierarchy": {"dates": periods, **DERIVED}}


def prefix_lengths(longest: int, values: Sequence[str] = ()) -> list[int]:
    """Return the number of characters of a code at each level, down to where the values still differ.

    >>> prefix_lengths(5), prefix_lengths(5, ["02139", "02210"]), prefix_lengths(1)
    ([4, 3, 2, 1], [4, 3], [])
    """
    return list(range(longest - 1, _shared(values), -1))[:_PREFIXES]


def _text(column: ColumnProfile) -> dict[str, Any]:
    """Return first characters of codes, or the frequent values of other text; what is rare is one class, other."""
    shortest, longest = column.facts.lengths
    codes = _is_code(column) and shortest == longest
    frequent = _frequent(column.facts.values or ())
    lengths = prefix_lengths(longest, frequent or column.facts.sample) if codes else []
    prefixes = {"hierarchy": {"prefix": [str(length) for length in lengths], **DERIVED}} if lengths else {}
    return ({"categories": sorted(frequent), **DERIVED} if frequent else {}) | prefixes


def _frequent(values: Sequence[tuple[str, int]]) -> list[str]:
    """Return the values of several rows, the most frequent first, at most 100; all values where none repeats."""
    several = [value for value, rows in values if rows >= _FEW]
    return (several or [value for value, _ in values])[:_MOST_CATEGORIES]


def _is_money(column: ColumnProfile) -> bool:
    units = () if column.clean is None else column.clean.cleaning.units
    return spoken(column.name, MONEY) is not None or not CURRENCIES.isdisjoint(units)


def _is_code(column: ColumnProfile) -> bool:
    return column.facts.shape in ("digits", "codes") and column.facts.lengths[1] <= _LONGEST_CODE


def _shared(values: Sequence[str]) -> int:
    """Return with how many characters all values begin."""
    ends = zip(min(values), max(values), strict=False) if len(values) > 1 else ()
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], ends))


def _round_number(least: Decimal) -> Decimal:
    """Return the least of …, 1, 2, 5, 10, 20, 50, … that is not below."""
    power = Decimal(10) ** math.floor(least.log10())
    return next(power * step for step in (1, 2, 5, 10) if power * step >= least)


def _floor(number: Decimal) -> int:
    return math.floor(number)


def _number(number: Decimal) -> str:
    text = f"{number.normalize():f}"
    return "0" if text == "-0" else text
