"""Files of Stata, SPSS and SAS: codes or their labels, as their makers declared them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from incrowd.engines.readers.reader import BATCH_ROWS, distinct, muffled, package, spell
from incrowd.errors import InvalidParameter, SourceUnreadable

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

    A column with value labels is text: the label, or the code where a code has none.  Values that the file declares as
    missing are missing, and so is an empty text.  Numbers are floats, as these formats store them.
    """

    path: Path
    names: tuple[str, ...]
    rows: int | None
    labels: Mapping[str, Mapping[object, str]]
    coding: Coding

    @property
    def settings(self) -> Mapping[str, str]:
        """Labels or codes, and the encoding if one was told."""
        encoding = {"encoding": self.coding.encoding} if self.coding.encoding else {}
        return {"values": "labels" if self.coding.labels else "codes", **encoding}

    @property
    def notes(self) -> tuple[str, ...]:
        """Which columns have labels."""
        columns = ", ".join(name for name in self.names if name in self.labels)
        return (f"labels instead of codes in: {columns}",) if columns else ()

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read the file in pieces; these formats keep rows together, so each piece costs a look at all columns."""
        return muffled(self._batches(columns), _errors(), f"{self.path} is a broken file. Write it again.")

    def _batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        wanted = list(columns) or list(self.names[:1])
        start = 0
        while True:
            values, _ = _call(
                self.path, self.coding, usecols=wanted, row_offset=start, row_limit=BATCH_ROWS, output_format="dict"
            )
            arrays = [self._array(name, values[name]) for name in wanted]
            if len(arrays[0]):
                batch = pa.RecordBatch.from_arrays(arrays, names=wanted)
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
    """Open a file of Stata, SPSS or SAS; only its dictionary of variables is read."""
    if coding.catalog is not None and path.suffix.lower() != ".sas7bdat":
        raise InvalidParameter("a catalog of labels belongs to a SAS file (.sas7bdat); leave catalog out.")
    about: Any = None
    try:
        _, about = _call(path, coding, metadataonly=True)
    except _errors():
        about = None
    if about is None:
        raise SourceUnreadable(
            f"{path} is not a readable {path.suffix} file, or its encoding is another. Write it again."
        )
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
