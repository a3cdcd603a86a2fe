"""Files: how the tables of a release are named, and where they lie."""

from __future__ import annotations

from pathlib import Path

from incrowd.core.certificate import Certificate
from incrowd.core.domain import Categories
from incrowd.core.schema import Schema
from incrowd.errors import InvalidParameter

FORMATS = ("parquet", "csv", "tsv")
"""The formats that releases are written in; each is also how a file's name ends."""
PUBLISH_TABLES = "publish tables"
"""The last step of a release that consists of several tables."""
_DATA, _MOST = "data", 10_000


def names_of(tables: int, form: str) -> tuple[str, ...]:
    """Return the names of the files of so many tables in one format.

    >>> names_of(1, "csv"), names_of(2, "csv")
    (('data.csv',), ('data.1.csv', 'data.2.csv'))
    """
    if tables == 1:
        return (f"{_DATA}.{form}",)
    return tuple(f"{_DATA}.{number}.{form}" for number in range(1, tables + 1))


def check_labels(form: str, schema: Schema) -> None:
    """Refuse an empty text among the labels of a column where files are text: there it is what is missing.

    >>> from incrowd.core.hierarchy.flat import Flat
    >>> from incrowd.core.schema import Column
    >>> check_labels("csv", Schema((Column("ill", hierarchy=Flat(Categories(("", "flu")))),)))
    Traceback (most recent call last):
    ...
    incrowd.errors.InvalidParameter: 'ill' has an empty text among its labels, which in a csv file looks like a ...
    """
    for column in schema.released if form != "parquet" else ():
        levels = range(column.hierarchy.height + 1) if isinstance(column.domain, Categories) else ()
        if any("" in (column.hierarchy.labels(level) or ()) for level in levels):
            raise InvalidParameter(
                f"{column.name!r} has an empty text among its labels, which in a {form} file looks like a missing "
                "value. Release as parquet, or give that value another name."
            )


def tables_of(certificate: Certificate) -> int:
    """Return how many tables the steps of a certificate lead to; 0 if they do not say, or say something odd."""
    last = certificate.chain[-1] if certificate.chain else {}
    if last.get("step") != PUBLISH_TABLES:
        return 1
    told = last.get("tables")
    return told if isinstance(told, int) and not isinstance(told, bool) and 1 < told <= _MOST else 0


def paths_of(certificate: Certificate, first: Path) -> tuple[Path, ...]:
    """Return where the files of a release lie, given the first: a single one anywhere, several beside each other."""
    if tables_of(certificate) == 1:
        return (first,)
    return tuple(first.with_name(name) for name in names_of(tables_of(certificate), first.suffix.removeprefix(".")))


def placed(certificate: Certificate, folder: Path, data: Path | None) -> tuple[Path, ...]:
    """Return where the files that a certificate names are looked for: in a folder, unless `data` says where else."""
    names = [str(output.get("name")) for output in certificate.outputs]
    if data is not None and len(names) == 1 and not data.is_dir():
        return (data,)
    return tuple((folder if data is None else data) / name for name in names)
