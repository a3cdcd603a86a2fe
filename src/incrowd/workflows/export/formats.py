"""Formats: what incrowd export can write, from a description of a release that is read once."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path

import pyarrow as pa

from incrowd.core.certificate import LIMITS, Certificate, File
from incrowd.core.terms import joined
from incrowd.core.words import listed
from incrowd.engines.statistics_files import Coding, open_statistics
from incrowd.errors import InvalidParameter
from incrowd.verifier.check import Verdict
from incrowd.verifier.files import CERTIFICATE, REPORT, STATISTICS, check_files, columns_of, documents_of, file_of
from incrowd.workflows.bounds.odds import Odds
from incrowd.workflows.certificates import read_certificate

FORMATS = {
    "onnx": "incrowd.workflows.export.onnx_model",
    "model-card": "incrowd.workflows.export.model_card",
    "croissant": "incrowd.workflows.export.croissant",
    "ro-crate": "incrowd.workflows.export.ro_crate",
    "ddi": "incrowd.workflows.export.ddi",
    "dp-registry": "incrowd.workflows.export.deployment",
}
"""Each format, and the module whose `exported` returns its bytes and notes."""


@dataclass(frozen=True)
class PublisherInfo:
    """What a certificate does not contain, and formats need: the publisher, the license, the address."""

    curator: str | None = None
    license: str | None = None
    url: str | None = None


@dataclass(frozen=True)
class Exported:
    """A release in a format: the content of a file, and notes for people.

    Where the format is a folder, the file has a `name` in it, and `files` are copied into it.
    """

    content: bytes
    notes: tuple[str, ...] = ()
    name: str | None = None
    files: tuple[Path, ...] = ()


def exported(source: Path, to: str, publisher: PublisherInfo | None = None) -> Exported:
    """Return a release in another format; only its public files are read, and nothing is charged."""
    make: Callable[[Path, PublisherInfo], Exported] = import_module(_module(to)).exported
    return make(source, publisher or PublisherInfo())


def _module(to: str) -> str:
    if to not in FORMATS:
        raise InvalidParameter(f"{to!r} is not an export format: choose one of {', '.join(FORMATS)}.")
    return FORMATS[to]


def export(source: Path, to: str, out: Path, publisher: PublisherInfo | None = None) -> Exported:
    """Write a release in another format to a new file, or to a new folder where the format is one."""
    _module(to)
    if out.exists():
        raise InvalidParameter(f"{out} exists already and is not overwritten: name a new one.")
    if not out.parent.is_dir():
        raise InvalidParameter(f"{out.parent} is not a folder: create it first.")
    made, partial = exported(source, to, publisher), out.with_name(f".{out.name}.{os.getpid()}")
    try:
        _write(made, partial)
        partial.rename(out)
    except OSError as error:
        raise InvalidParameter(f"{out} cannot be written: {error.strerror or 'no reason given'}.") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        if partial.is_file():
            partial.unlink()
    return made


def _write(made: Exported, path: Path) -> None:
    if made.name is None:
        path.write_bytes(made.content)
        return
    path.mkdir()
    for file in made.files:
        shutil.copyfile(file, path / file.name)
    (path / made.name).write_bytes(made.content)


MOST_VALUES = 200
"""Columns with at most this many different values list them."""
_MEDIA = {
    ".parquet": "application/vnd.apache.parquet",
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".dta": "application/x-stata-dta",
    ".sav": "application/x-spss-sav",
    ".xpt": "application/x-sas-xport",
    ".json": "application/json",
    ".html": "text/html",
    ".graphml": "application/xml",
}


@dataclass(frozen=True)
class ColumnDescription:
    """A released column: its name, its storage, and its values where these are few."""

    name: str
    type: pa.DataType
    values: tuple[str, ...] | None


@dataclass(frozen=True)
class TableDescription:
    """A released table."""

    file: File
    rows: int
    columns: tuple[ColumnDescription, ...]


@dataclass(frozen=True)
class ReleaseDescription:
    """A release and its certificate; `tables` are the files with rows, in the order of the certificate.

    Only what was published is read: the certificate and the files that it names.  A file that differs from the
    certified one is refused, so nothing is described that no certificate covers.
    """

    folder: Path
    certificate: Certificate
    publisher: PublisherInfo
    files: tuple[File, ...]
    tables: tuple[TableDescription, ...]

    def exported(self, document: object) -> Exported:
        """Return a document about this release as a file, with a note on what the publisher has to add."""
        text = document if isinstance(document, str) else json.dumps(document, ensure_ascii=False, indent=2) + "\n"
        unknown = [f"--{name}" for name, value in vars(self.publisher).items() if value is None]
        note = (f"not in the certificate, and omitted: {listed(unknown)}",) if unknown else ()
        return Exported(text.encode(), note)

    @property
    def name(self) -> str:
        """The dataset's name, and its reference period if one is declared."""
        dataset = self.certificate.dataset
        return dataset.name if dataset.period is None else f"{dataset.name} ({dataset.period})"

    @property
    def day(self) -> str:
        """The day of the release."""
        return self.certificate.created[:10]

    @property
    def identifier(self) -> str:
        """A globally unique identifier of the release."""
        return f"urn:uuid:{self.certificate.id}"

    @property
    def odds(self) -> Odds:
        """The privacy loss of this release."""
        return Odds.of(self.certificate.accounting.spent)

    @property
    def summary(self) -> str:
        """The release in a few sentences: its method, its privacy loss, its first claim."""
        stated = self.certificate
        head = f"A release of {stated.dataset.name} by the method “{stated.method.name}” ({stated.tool})."
        cost = f"For {stated.guarantee.unit}: {self.odds.numbers}." if self.odds.bounded else _UNBOUNDED
        return " ".join((head, cost, *(f"Claim ({claim.kind}): {claim.sentence}" for claim in stated.claims[:1])))

    @property
    def processing(self) -> str:
        """The steps, in order."""
        return " ".join(step.sentence for step in self.certificate.steps)

    @property
    def open(self) -> str:
        """What the claims do not protect, and the limits of any certificate."""
        exposures = dict.fromkeys(text for claim in self.certificate.claims for text in claim.not_protected)
        named = f"Not protected: {'; '.join(map(str, exposures))}. " if exposures else ""
        return named + " ".join(LIMITS)

    @property
    def assumptions(self) -> str:
        """The assumptions of the guarantee."""
        return joined(sorted(self.certificate.guarantee.assumes)) or "nothing"


_UNBOUNDED = (
    "No epsilon: there is no bound on what someone with background knowledge can learn about one person from it."
)


def describe(release: Path, publisher: PublisherInfo) -> ReleaseDescription:
    """Read a release's certificate and the tables it names; a missing, unknown or changed file is refused."""
    certificate, folder = read_certificate(release), release if release.is_dir() else release.parent
    wrong = next(
        (result for result in check_files(certificate, folder, None) if result.verdict is not Verdict.PASSED), None
    )
    if wrong is not None:
        raise InvalidParameter(f"{release} is not exported: {wrong.why}. Run `incrowd verify` for details.")
    beside = {REPORT, *documents_of(certificate)}
    tables = tuple(
        _table(folder / file.name, file)
        for file in certificate.outputs
        if file.name not in beside and Path(file.name).suffix in _TABLES
    )
    own = replace(file_of(release / CERTIFICATE if release.is_dir() else release), name=CERTIFICATE)
    return ReleaseDescription(folder, certificate, publisher, (own, *certificate.outputs), tables)


def media_type(name: str) -> str:
    """Return the media type of a file by its name."""
    return _MEDIA.get(Path(name).suffix, "application/octet-stream")


_TABLES = {".parquet", ".csv", ".tsv", *(f".{kind}" for kind in STATISTICS)}


def _table(path: Path, file: File) -> TableDescription:
    names: tuple[str, ...] = ()
    types: tuple[pa.DataType, ...] = ()
    seen: dict[str, dict[str, None] | None] = {}
    rows = 0
    for batch in _batches(path):
        if not names:
            names, types = tuple(batch.schema.names), tuple(map(_plain, batch.schema.types))
            seen = {name: {} if _listed(kind) else None for name, kind in zip(names, types, strict=True)}
        rows += batch.num_rows
        for name, values in seen.items():
            if values is not None:
                values.update(dict.fromkeys(map(str, batch.column(name).drop_null().unique().to_pylist())))
                seen[name] = values if len(values) <= MOST_VALUES else None
    columns = tuple(
        ColumnDescription(name, kind, None if seen[name] is None else tuple(sorted(seen[name] or ())))
        for name, kind in zip(names, types, strict=True)
    )
    return TableDescription(file, rows, columns)


def _batches(path: Path) -> Iterator[pa.RecordBatch]:
    if path.suffix == ".parquet":
        from pyarrow import parquet

        with parquet.ParquetFile(path) as opened:
            yield pa.RecordBatch.from_pylist([], opened.schema_arrow)
            yield from opened.iter_batches()
    elif path.suffix.removeprefix(".") in STATISTICS:
        source = open_statistics(path, Coding())
        yield from source.read(list(source.names))
    else:
        from pyarrow import csv

        parse = csv.ParseOptions(delimiter="\t" if path.suffix == ".tsv" else ",", newlines_in_values=True)
        text = csv.ConvertOptions(column_types=dict.fromkeys(columns_of(path), pa.string()))
        with csv.open_csv(path, parse_options=parse, convert_options=text) as opened:
            yield pa.RecordBatch.from_pylist([], opened.schema)
            yield from opened


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _listed(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_boolean(kind))
