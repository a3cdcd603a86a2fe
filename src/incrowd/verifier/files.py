"""Files: names and places of published tables, and their contents without an engine."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from incrowd.core.certificate import Certificate, File
from incrowd.core.spreadsheet import MARK
from incrowd.core.steps.step import Step
from incrowd.engines.regular_file import is_regular, open_regular
from incrowd.engines.statistics_files import Coding, open_statistics
from incrowd.verifier.check import CheckOutcome, Problem, failed, passed, undecided

STATISTICS = ("dta", "sav", "xpt")
"""The formats of Stata, SPSS and SAS, in which releases are written."""
FORMATS = ("parquet", "csv", "tsv", f"{MARK}.csv", f"{MARK}.tsv", *STATISTICS)
"""The formats that releases are written in; `spreadsheet`: with text that no spreadsheet program runs as a formula.

Each is also how a file's name ends, so that whoever has the file can tell.
"""
CERTIFICATE, REPORT = "certificate.json", "report.html"
_DATA = "data"


def names_of(tables: int, form: str, last: Step | None = None) -> tuple[str, ...]:
    """Return the names of the files of so many tables in one format; the last step may name them itself.

    >>> names_of(1, "csv"), names_of(2, "csv")
    (('data.csv',), ('data.1.csv', 'data.2.csv'))
    """
    stems: tuple[str, ...] = getattr(last, "stems", ())
    if stems:
        return tuple(f"{stem}.{form}" for stem in stems)
    if tables == 1:
        return (f"{_DATA}.{form}",)
    return tuple(f"{_DATA}.{number}.{form}" for number in range(1, tables + 1))


def file_of(path: Path) -> File:
    """Return what a certificate says of a file."""
    with open_regular(path, through_link=True) as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
        return File(path.name, digest, opened.tell())


def tables_of(certificate: Certificate) -> tuple[File, ...]:
    """Return the files of a certificate that are tables, or documents beside them: all but the report."""
    return tuple(file for file in certificate.outputs if file.name != REPORT)


def documents_of(certificate: Certificate) -> tuple[str, ...]:
    """Return the names of what is published beside the tables, as the last step says; most releases have none."""
    documents: tuple[str, ...] = getattr(certificate.steps[-1], "documents", ()) if certificate.steps else ()
    return documents


def placed(certificate: Certificate, folder: Path, data: Path | None) -> tuple[Path, ...]:
    """Return where the tables of a certificate are looked for: in a folder, unless `data` says where else."""
    names = [file.name for file in tables_of(certificate)]
    if not all(map(_is_plain, names)):  # a name with a path in it points elsewhere, and nothing there is opened
        return ()
    beside = documents_of(certificate)
    if data is not None and len(names) - len(beside) == 1 and not data.is_dir():
        return (data, *(folder / name for name in names[1:]))
    return tuple((folder if data is None else data) / name for name in names)


def _is_plain(name: str) -> bool:
    return Path(name).name == name and "\\" not in name and "\0" not in name and name != ".."


def is_present(path: Path, data: Path | None) -> bool:
    """Whether a file of a release is there: a regular file, in its own folder; what the caller named may be a link."""
    return path.is_file() if path == data else is_regular(path)


def check_files(certificate: Certificate, folder: Path, data: Path | None) -> Iterator[CheckOutcome]:
    """Hash the files again, the report included where it lies beside the certificate."""
    problem = _misnamed(certificate)
    if problem is not None:
        yield failed("files", problem.text)
        return
    paths = dict(zip(tables_of(certificate), placed(certificate, folder, data), strict=True))
    for file in certificate.outputs:
        path = paths.get(file, folder / file.name)
        yield _hashed(file, path) if is_present(path, data) else _missing(file, path)
    if not certificate.outputs and data is not None:
        yield failed("files", "the certificate names no files: this file is not certified")
    elif not certificate.outputs:
        yield undecided("files", "the certificate names no files: the release was not written")


def check_folder(certificate: Certificate, folder: Path, named: Collection[str]) -> CheckOutcome:
    """Look at what else lies in the folder of a release; `named` are names that the caller gave."""
    beside = {CERTIFICATE, *named, *(file.name for file in certificate.outputs)}
    unknown_names = sorted(path.name for path in folder.iterdir() if path.name not in beside)
    names = ", ".join(map(repr, unknown_names))
    problem = (
        Problem(f"the certificate does not name {names}: do not pass these files on with it") if unknown_names else None
    )
    return CheckOutcome("folder", problem, "the certificate names all its files")


def columns_of(file: Path) -> tuple[str, ...]:
    """Return the columns of a published file, in order."""
    if file.suffix == ".parquet":
        from pyarrow import parquet as pq

        return tuple(pq.read_schema(file).names)
    if file.suffix.removeprefix(".") in STATISTICS:
        return open_statistics(file, Coding()).names
    with file.open(encoding="utf-8", newline="") as text:
        return tuple(next(csv.reader(text, delimiter=_delimiter(file)), []))


def values_of(file: Path, column: str) -> Iterator[Any]:
    """Return the values of one column of a published file, some of them perhaps once only."""
    if file.suffix == ".parquet":
        from pyarrow import parquet as pq

        with pq.ParquetFile(file) as opened:
            for batch in opened.iter_batches(columns=[column]):
                yield from batch.column(0).unique().to_pylist()
        return
    if file.suffix.removeprefix(".") in STATISTICS:
        for batch in open_statistics(file, Coding()).read([column]):
            yield from batch.column(0).unique().to_pylist()
        return
    with file.open(encoding="utf-8", newline="") as text:
        for row in csv.DictReader(text, delimiter=_delimiter(file)):
            yield row[column]


def _misnamed(certificate: Certificate) -> Problem | None:
    """Return a problem if a certificate names other files than its tables, documents and report."""
    names = tuple(file.name for file in certificate.outputs)
    last = certificate.steps[-1] if certificate.steps else None
    count = getattr(last, "tables", 1)
    possible = [(*names_of(count, form, last), *documents_of(certificate), REPORT) for form in FORMATS]
    if not names or names in possible:
        return None
    examples = " or ".join(", ".join(names) for names in possible[:3])
    return Problem(f"such a release has the files {examples}, but the certificate names others")


def _missing(file: File, path: Path) -> CheckOutcome:
    why = "the file is missing: give it as DATA, or put it beside the certificate"
    if path.is_symlink() or path.exists():
        why = "it is a link, a folder, a device or a pipe: a release consists of files"
    return failed(f"file {file.name}", why)


def _hashed(file: File, path: Path) -> CheckOutcome:
    about = f"file {file.name}"
    actual = file_of(path)
    if (actual.sha256, actual.bytes) == (file.sha256, file.bytes):
        return passed(about, "its SHA-256 matches the certificate")
    why = "its SHA-256 or size differs: this is not the certified file"
    return failed(about, why)


def _delimiter(file: Path) -> str:
    return "\t" if file.suffix == ".tsv" else ","
