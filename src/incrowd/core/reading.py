"""Reading: what a file or a frame delivers, taken row by row as the declared type.

A reader may deliver a column of integers as text (CSV), as floats (statistics formats), as decimals (databases) or as
integers.  What is missing stays missing (null, NaN, or blank where the type is not text); what cannot be read as the
declared type is *unreadable*, and decided on later by the column's rule for values outside its domain.  Each value
is read on its own: nothing here looks across rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from incrowd.core.domain import Type
from incrowd.errors import InvalidParameter

_PATTERNS = {
    Type.INTEGER: r"^[+-]?0*[0-9]{1,18}(\.0*)?$",
    Type.DECIMAL: r"^[+-]?([0-9]{1,40}(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,2})?$",
    Type.DATE: r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ] *[0-9].*)?$",  # a time may follow; "or earlier" is another day
}
_TRUE = ("true", "t", "yes", "y", "1")
_FALSE = ("false", "f", "no", "n", "0")
_DIGITS = 18
"""So many digits are always a whole number of 64 bits."""
_WHOLE = float(2**62)  # floats below it convert to whole numbers of 64 bits without overflow


@dataclass(frozen=True)
class Read:
    """Values in the storage of the declared type, null where missing or unreadable, and where they are unreadable."""

    values: pa.Array
    unreadable: NDArray[np.bool_]


def read(array: pa.Array, kind: Type) -> Read:
    """Take each value of a plain array as the declared type.

    >>> read(pa.array(["17", "017", "17.0", "x", "", None]), Type.INTEGER).values.to_pylist()
    [17, 17, 17, None, None, None]
    >>> read(pa.array([1.0, 1.5, float("nan")]), Type.INTEGER).unreadable.tolist()
    [False, True, False]
    """
    plain = _plain(array)
    values = _READERS[kind](plain)
    if values.null_count == plain.null_count:  # what is missing stays missing: nothing else is
        return Read(values, np.zeros(len(values), np.bool_))
    present = pc.is_valid(plain)
    if pa.types.is_floating(plain.type):
        present = pc.and_(present, pc.invert(pc.fill_null(pc.is_nan(plain), False)))
    elif pa.types.is_string(plain.type) and kind is not Type.TEXT:
        present = pc.and_(present, pc.fill_null(pc.not_equal(pc.utf8_trim_whitespace(plain), ""), False))
    return Read(values, pc.and_(present, pc.is_null(values)).to_numpy(zero_copy_only=False))


def as_dictionary(array: pa.Array | pa.ChunkedArray) -> tuple[pa.Array, NDArray[np.integer] | None]:
    """Return values, and for each row the index of its value; a null has the index `len(values)`.

    Floats and moments repeat too seldom for a dictionary to pay: they are their own values, and the indices are None.

    >>> values, indices = as_dictionary(pa.array(["b", None, "b"]))
    >>> values.to_pylist(), indices.tolist()
    (['b'], [0, 1, 0])
    """
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_floating(array.type) or pa.types.is_timestamp(array.type):
        return array, None
    if not pa.types.is_dictionary(array.type):
        array = _plain(array).dictionary_encode()
    indices = array.indices
    if indices.null_count:
        indices = pc.fill_null(pc.cast(indices, pa.int64()), len(array.dictionary))
    return array.dictionary, indices.to_numpy(zero_copy_only=False)


def is_wide(dictionary: pa.Array, rows: int) -> bool:
    """Whether so many of the rows have a value of their own that a dictionary of such rows does not pay."""
    return 2 * len(dictionary) > rows


def canonical(values: pa.Array) -> pa.Array:
    """Return the one way in which each stored value is written.

    >>> canonical(pa.array([1.0, 0.5, 1e21])).to_pylist()
    ['1', '0.5', '1000000000000000000000']
    """
    if pa.types.is_floating(values.type):
        return pa.array([None if value is None else number_text(value) for value in values.to_pylist()], pa.string())
    return pc.cast(values, pa.string())


def parse(text: str, kind: Type) -> int | float | date | str | None:
    """Take one text as the declared type, or None if it is missing or unreadable: `read`, slow and obvious.

    >>> parse("17.0", Type.INTEGER), parse("2020-02-30", Type.DATE), parse("Yes", Type.BOOLEAN)
    (17, None, 'true')
    """
    if kind is Type.TEXT:
        return text
    text = text.strip()
    if kind is Type.BOOLEAN:
        lower = text.lower()
        return "true" if lower in _TRUE else "false" if lower in _FALSE else None
    if not re.match(_PATTERNS[kind], text):
        return None
    if kind is Type.INTEGER:
        return int(Decimal(text))
    if kind is Type.DECIMAL:
        return float(text) + 0.0
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        return None


def number_text(value: float) -> str:
    """Return a number without exponent and without trailing zeros.

    >>> number_text(2.50), number_text(-0.0), number_text(1e-7), number_text(10)
    ('2.5', '0', '0.0000001', '10')
    """
    text = format(Decimal(repr(value)), "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def _plain(array: pa.Array) -> pa.Array:
    """Return the array in one of the few types the readers know."""
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        return _plain(array.storage)
    if pa.types.is_dictionary(kind):
        return _plain(array.dictionary_decode())
    if pa.types.is_run_end_encoded(kind):
        return _plain(pc.run_end_decode(array))
    if pa.types.is_nested(kind):
        raise InvalidParameter(
            f"a column of type {kind} holds several values in one row: give each a column, or declare a separator in a "
            "policy of method itemsets."
        )
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pc.cast(array, pa.string())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return _decoded(array)
    if pa.types.is_float16(kind):
        return pc.cast(array, pa.float32())
    return array


def _decoded(array: pa.Array) -> pa.Array:
    try:
        return pc.cast(pc.cast(array, pa.binary()), pa.string())
    except pa.ArrowInvalid:
        # No text at all: shown with replacement characters, so that each value is still judged on its own.
        decoded = (None if value is None else value.decode("utf-8", "replace") for value in array.to_pylist())
        return pa.array(decoded, pa.string())


def _integers(array: pa.Array) -> pa.Array:
    kind = array.type
    if pa.types.is_string(kind) and _are_digits(array):
        return pc.cast(array, pa.int64())
    if pa.types.is_string(kind):
        text = _matching(array, Type.INTEGER)
        digits = pc.replace_substring_regex(text, r"^\+|\.0*$", "")
        return pc.cast(digits, pa.int64())
    if pa.types.is_decimal(kind):
        return _integers(pc.cast(array, pa.string()))
    if pa.types.is_uint64(kind):
        return pc.cast(_only(array, pc.less(array, pa.scalar(2**63, pa.uint64()))), pa.int64())
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return pc.cast(array, pa.int64())
    if pa.types.is_floating(kind):
        whole = pc.and_(pc.equal(pc.floor(array), array), pc.less(pc.abs(array), _WHOLE))
        return pc.cast(_only(array, whole), pa.int64())
    return pa.nulls(len(array), pa.int64())


def _decimals(array: pa.Array) -> pa.Array:
    kind = array.type
    if pa.types.is_string(kind):
        numbers = pc.cast(_matching(array, Type.DECIMAL), pa.float64())
    elif pa.types.is_decimal(kind) or pa.types.is_float32(kind):
        numbers = pc.cast(pc.cast(array, pa.string()), pa.float64())
    elif pa.types.is_integer(kind):
        numbers = pc.cast(array, pa.float64(), safe=False)
    elif pa.types.is_floating(kind):
        numbers = array
    else:
        return pa.nulls(len(array), pa.float64())
    return pc.add(_only(numbers, pc.is_finite(numbers)), 0.0)  # adding zero turns -0 into 0


def _texts(array: pa.Array) -> pa.Array:
    kind = array.type
    if pa.types.is_string(kind):
        return array
    if pa.types.is_floating(kind):
        return canonical(_decimals(array))
    if pa.types.is_decimal(kind):
        text = pc.replace_substring_regex(pc.cast(array, pa.string()), r"(\.[0-9]*?)0+$", r"\1")
        return pc.replace_substring_regex(text, r"\.$", "")
    try:
        return pc.cast(array, pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.nulls(len(array), pa.string())


def _days_of(array: pa.Array) -> pa.Array:
    """Return dates as days; Arrow's longer dates may carry a time of day, which is cut off."""
    if pa.types.is_date64(array.type):
        array = pc.floor_temporal(array.cast(pa.timestamp("ms")), unit="day")
    return pc.cast(array, pa.date32())


def _dates(array: pa.Array) -> pa.Array:
    kind = array.type
    if pa.types.is_string(kind):
        return _days(pc.utf8_slice_codeunits(_matching(array, Type.DATE), 0, 10))
    if pa.types.is_timestamp(kind):
        return pc.cast(pc.local_timestamp(array) if kind.tz else array, pa.date32())
    if pa.types.is_date(kind):
        return _days_of(array)
    return pa.nulls(len(array), pa.date32())


def _days(text: pa.Array) -> pa.Array:
    """Return the day each YYYY-MM-DD names, null where the calendar has no such day."""
    filled = pc.fill_null(text, "0000-00-00")
    year, month, day = (
        pc.cast(pc.utf8_slice_codeunits(filled, *part), pa.int64()).to_numpy(zero_copy_only=False)
        for part in ((0, 4), (5, 7), (8, 10))
    )
    valid = (year >= 1) & (month >= 1) & (month <= 12)
    first = np.where(valid, (year - 1970) * 12 + month - 1, 0).astype("datetime64[M]")
    start = first.astype("datetime64[D]").astype(np.int64)
    length = (first + 1).astype("datetime64[D]").astype(np.int64) - start
    valid &= (day >= 1) & (day <= length)
    return pc.cast(pa.array((start + day - 1).astype(np.int32), pa.int32(), mask=~valid), pa.date32())


def _booleans(array: pa.Array) -> pa.Array:
    kind = array.type
    if not (pa.types.is_string(kind) or pa.types.is_boolean(kind)):
        array = canonical(_integers(array))
    text = pc.utf8_lower(pc.utf8_trim_whitespace(pc.cast(array, pa.string())))
    place = pc.index_in(text, value_set=pa.array(_TRUE + _FALSE))
    return pc.if_else(pc.less(place, len(_TRUE)), "true", "false")


def _are_digits(array: pa.Array) -> bool:
    """Whether all texts are digits and surely numbers of 64 bits: then no pattern is needed, which takes most time."""
    digits = pc.all(pc.ascii_is_decimal(array)).as_py()
    return bool(digits) and pc.max(pc.binary_length(array)).as_py() <= _DIGITS


def _matching(array: pa.Array, kind: Type) -> pa.Array:
    text = pc.utf8_trim_whitespace(array)
    return _only(text, pc.match_substring_regex(text, _PATTERNS[kind]))


def _only(values: pa.Array, allowed: pa.Array) -> pa.Array:
    return pc.if_else(allowed, values, pa.scalar(None, values.type))


_READERS: dict[Type, Callable[[pa.Array], pa.Array]] = {
    Type.INTEGER: _integers,
    Type.DECIMAL: _decimals,
    Type.TEXT: _texts,
    Type.DATE: _dates,
    Type.BOOLEAN: _booleans,
}
