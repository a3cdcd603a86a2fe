"""Files for Stata, SPSS and SAS: the released values, text as codes with labels, columns with titles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from incrowd.engines.readers.reader import package
from incrowd.engines.writers.files import Released, rebuild
from incrowd.errors import InvalidParameter

WRITERS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    ".dta": ("write_dta", {}),
    ".sav": ("write_sav", {}),
    ".xpt": ("write_xport", {"file_format_version": 8}),
}
"""The endings of Stata, SPSS and SAS, how each is written, and with which settings."""
_WHAT = "files of Stata, SPSS and SAS"
_LONGEST = 120  # bytes of a label in SPSS
_EXACT = 2**53


def write_statistics(data: Released, path: Path, titles: Mapping[str, str]) -> None:
    """Write a table; texts are codes from 1 on with the texts as labels, in order, and `titles` name columns.

    Labels are made from the released values alone.  SAS transport files have no labels of values, and keep the texts.
    """
    table = rebuild(data if isinstance(data, pa.Table) else data.read_all())
    columns: dict[str, pa.Array] = {}
    labels: dict[str, dict[int, str]] = {}
    for name in table.column_names:
        columns[name], found = _column(table[name].combine_chunks(), path.suffix)
        labels |= {name: found} if found else {}
    named = {name: title for name, title in titles.items() if name in columns}
    writer, settings = WRITERS[path.suffix]
    options = dict(settings) if path.suffix == ".xpt" else {**settings, "variable_value_labels": labels}
    frame = package("polars", _WHAT).from_arrow(pa.table(columns))
    getattr(package("pyreadstat", _WHAT), writer)(frame, str(path), column_labels=named, **options)


def check_names(form: str, names: Sequence[str]) -> None:
    """Refuse names of columns that such a file cannot have, by writing one without rows; nothing of it stays."""
    empty = pa.table({name: pa.array([], pa.float64()) for name in names})
    errors = (package("pyreadstat", _WHAT).PyreadstatError, package("pyreadstat", _WHAT).ReadstatError, ValueError)
    with TemporaryDirectory() as folder:
        try:
            write_statistics(empty, Path(folder, f"names.{form}"), {})
        except errors:
            raise InvalidParameter(
                f"a {form} file cannot have these columns: its names are short, start with a letter, and hold letters, "
                "digits and underscores. Release as parquet or csv, or rename the columns of the source."
            ) from None


def _column(values: pa.Array, ending: str) -> tuple[pa.Array, dict[int, str]]:
    """Return a column as such a file holds it, and the labels of its codes."""
    if pa.types.is_integer(values.type) and _large(values):
        values = pc.cast(values, pa.string())
    text = pc.cast(values, pa.string()) if pa.types.is_boolean(values.type) else values
    if not (pa.types.is_dictionary(text.type) or pa.types.is_string(text.type)):
        return values, {}
    coded = text if pa.types.is_dictionary(text.type) else _array(rebuild(pa.table({"": text.dictionary_encode()})))
    spelled = coded.dictionary.to_pylist()
    if ending == ".xpt" or any(len(each.encode()) > _LONGEST for each in spelled):
        return coded.dictionary_decode(), {}
    return pc.add(coded.indices, 1), dict(enumerate(spelled, 1))


def _array(table: pa.Table) -> pa.Array:
    return table.column(0).combine_chunks()


def _large(values: pa.Array) -> bool:
    """Whether some whole number is too large for the numbers of these formats."""
    ends = pc.min_max(values).as_py()
    return any(end is not None and abs(end) > _EXACT for end in ends.values())
