"""Files of Stata, SPSS and SAS: read as codes or labels, and written with labels and titles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from incrowd.engines.readers.reader import BATCH_ROWS, attempt, distinct, muffled, package, spell
from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from incrowd.engines.writers.files import Released

READERS = {
    ".dta": "read_dta",
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}
_WHAT = "files of Stata, SPSS and SAS"


@dataclass(frozen=True)
class Coding:
    """How the codes of a statistics file are read."""

    labels: bool = True
    encoding: str | None = None
    catalog: Path | None = None


@dataclass(frozen=True)
class StatisticsFile:
    """A file of Stata, SPSS or SAS.

    A column with value labels is text: the label, or the code where it has none.  Values that the file declares as
    missing are missing, and so is an empty text.  Numbers are floats, as these formats store them.
    """

    path: Path
    names: tuple[str, ...]
    rows: int | None
    labels: Mapping[str, Mapping[object, str]]
    coding: Coding

    @property
    def settings(self) -> Mapping[str, str]:
        encoding = {"encoding": self.coding.encoding} if self.coding.encoding else {}
        return {"values": "labels" if self.coding.labels else "codes", **encoding}

    @property
    def notes(self) -> tuple[str, ...]:
        columns = ", ".join(name for name in self.names if name in self.labels)
        return (f"labels instead of codes in: {columns}",) if columns else ()

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read the file in pieces; these formats store rows together, so each piece reads all columns."""
        return muffled(self._batches(columns), _errors(), f"{self.path} is a broken file. Write it again.")

    def _batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        names = list(columns) or list(self.names[:1])
        start = 0
        while True:
            values, _ = _call(
                self.path, self.coding, usecols=names, row_offset=start, row_limit=BATCH_ROWS, output_format="dict"
            )
            arrays = [self._array(name, values[name]) for name in names]
            if len(arrays[0]):
                batch = pa.RecordBatch.from_arrays(arrays, names=names)
                yield batch if columns else batch.select([])
            if len(arrays[0]) < BATCH_ROWS:
                return
            start += BATCH_ROWS

    def _array(self, name: str, values: list[object]) -> pa.Array:
        labels = self.labels.get(name)
        if labels is not None:
            return pa.array(
                [None if value is None else labels.get(value, spell(value)) for value in values], pa.string()
            )
        return pa.array([None if isinstance(value, str) and not value else value for value in values])


def open_statistics(path: Path, coding: Coding) -> StatisticsFile:
    """Open a file of Stata, SPSS or SAS; only its list of variables is read."""
    if coding.catalog is not None and path.suffix.lower() != ".sas7bdat":
        raise InvalidParameter("a catalog of labels belongs to a SAS file (.sas7bdat); leave catalog out.")
    problem = f"{path} is not a readable {path.suffix} file, or has another encoding. Declare it, or write it again."
    _, about = attempt(lambda: _call(path, coding, metadataonly=True), _errors(), problem)
    labels = about.variable_value_labels if coding.labels else {}
    return StatisticsFile(path, distinct(about.column_names), about.number_rows, labels, coding)


def _call(path: Path, coding: Coding, **options: object) -> tuple[Any, Any]:
    reader: Callable[..., tuple[Any, Any]] = getattr(package("pyreadstat", _WHAT), READERS[path.suffix.lower()])
    if coding.encoding:
        options["encoding"] = coding.encoding
    if coding.catalog:
        options["catalog_file"] = str(coding.catalog)
    return reader(str(path), **options)


def _errors() -> tuple[type[Exception], ...]:
    pyreadstat = package("pyreadstat", _WHAT)
    return (pyreadstat.ReadstatError, pyreadstat.PyreadstatError, pa.ArrowException, OSError, ValueError)


WRITERS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    ".dta": ("write_dta", {}),
    ".sav": ("write_sav", {}),
    ".xpt": ("write_xport", {"file_format_version": 8}),
}
"""The endings of Stata, SPSS and SAS, how each is written, and with which settings."""
_LONGEST = 120  # bytes of a label in SPSS
_EXACT = 2**53  # SAS, SPSS and Stata store floats: larger whole numbers are not exact


def write_statistics(data: Released, path: Path, titles: Mapping[str, str]) -> None:
    """Write a table; texts are codes from 1 on with the texts as labels, in order, and `titles` name columns.

    Labels are made from the released values alone.  SAS transport files have no labels of values, and keep the texts.
    """
    from incrowd.engines.writers.files import rebuild

    table = rebuild(data if isinstance(data, pa.Table) else data.read_all())
    columns: dict[str, pa.Array] = {}
    labels: dict[str, dict[int, str]] = {}
    for name in table.column_names:
        columns[name], texts = _column(table[name].combine_chunks(), path.suffix)
        labels |= {name: texts} if texts else {}
    named = {name: title for name, title in titles.items() if name in columns}
    writer, settings = WRITERS[path.suffix]
    options = dict(settings) if path.suffix == ".xpt" else {**settings, "variable_value_labels": labels}
    frame = package("polars", _WHAT).from_arrow(pa.table(columns))
    getattr(package("pyreadstat", _WHAT), writer)(frame, str(path), column_labels=named, **options)


def check_names(form: str, names: Sequence[str]) -> None:
    """Refuse names of columns that such a file cannot have, by writing a temporary file without rows."""
    empty = pa.table({name: pa.array([], pa.float64()) for name in names})
    errors = (package("pyreadstat", _WHAT).PyreadstatError, package("pyreadstat", _WHAT).ReadstatError, ValueError)
    with TemporaryDirectory() as folder:
        try:
            write_statistics(empty, Path(folder, f"names.{form}"), {})
        except errors:
            raise InvalidParameter(
                f"a {form} file cannot have these columns: names must be short, start with a letter, and hold letters, "
                "digits and underscores. Release as parquet or csv, or rename the columns of the source."
            ) from None


def _column(values: pa.Array, ending: str) -> tuple[pa.Array, dict[int, str]]:
    """Return a column as such a file holds it, and the labels of its codes."""
    if pa.types.is_integer(values.type) and _large(values):
        values = pc.cast(values, pa.string())
    text = pc.cast(values, pa.string()) if pa.types.is_boolean(values.type) else values
    if not (pa.types.is_dictionary(text.type) or pa.types.is_string(text.type)):
        return values, {}
    from incrowd.engines.writers.files import rebuild

    coded = text
    if not pa.types.is_dictionary(text.type):
        coded = rebuild(pa.table({"": text.dictionary_encode()})).column(0).combine_chunks()
    labels = coded.dictionary.to_pylist()
    if ending == ".xpt" or any(len(label.encode()) > _LONGEST for label in labels):
        return coded.dictionary_decode(), {}
    return pc.add(coded.indices, 1), dict(enumerate(labels, 1))


def _large(values: pa.Array) -> bool:
    """Whether some whole number is too large for these formats, which store floats."""
    ends = pc.min_max(values).as_py()
    return any(end is not None and abs(end) > _EXACT for end in ends.values())
