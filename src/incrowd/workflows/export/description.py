"""Description: what a certificate and its files say of a release, gathered once for every form of export.

Only what was published is read: the certificate and the files that it names.  A file that is not the one that was
certified is refused, so nothing is described that no certificate covers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
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
from incrowd.workflows.export.formats import Exported, PublisherInfo
from incrowd.workflows.verify.verify import read_certificate

MOST_VALUES = 200
"""How many different values a column may have that are listed one by one."""
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
    """A release as its certificate tells it; `tables` are the files with rows, in the order of the certificate."""

    folder: Path
    certificate: Certificate
    holder: PublisherInfo
    files: tuple[File, ...]
    tables: tuple[TableDescription, ...]

    def exported(self, document: object) -> Exported:
        """Return a document about this release as a file, with what the publisher still has to say."""
        text = document if isinstance(document, str) else json.dumps(document, ensure_ascii=False, indent=2) + "\n"
        unknown = [f"--{name}" for name, value in vars(self.holder).items() if value is None]
        note = (f"not known to the certificate, and left out: {listed(unknown)}",) if unknown else ()
        return Exported(text.encode(), note)

    @property
    def name(self) -> str:
        """The dataset's name, and the time that it is about where one is declared."""
        dataset = self.certificate.dataset
        return dataset.name if dataset.period is None else f"{dataset.name} ({dataset.period})"

    @property
    def day(self) -> str:
        """The day of the release."""
        return self.certificate.created[:10]

    @property
    def identifier(self) -> str:
        """The release under a name that is unique everywhere."""
        return f"urn:uuid:{self.certificate.id}"

    @property
    def odds(self) -> Odds:
        """What this release costs."""
        return Odds.of(self.certificate.accounting.spent)

    @property
    def summary(self) -> str:
        """The release in a few sentences: how it was made, what is guaranteed, what that needs."""
        stated = self.certificate
        head = f"A release of {stated.dataset.name} by the method “{stated.method.name}” ({stated.tool})."
        cost = f"For {stated.guarantee.unit}: {self.odds.numbers}." if self.odds.bounded else _UNBOUNDED
        return " ".join((head, cost, *(f"Claim ({claim.kind}): {claim.sentence}" for claim in stated.claims[:1])))

    @property
    def processing(self) -> str:
        """What happened to the rows, in order."""
        return " ".join(step.sentence for step in self.certificate.steps)

    @property
    def open(self) -> str:
        """What the claims do not protect, and what no certificate says."""
        left = dict.fromkeys(text for claim in self.certificate.claims for text in claim.not_protected)
        named = f"Not protected: {'; '.join(map(str, left))}. " if left else ""
        return named + " ".join(LIMITS)

    @property
    def assumptions(self) -> str:
        """What must be true beside what was proved and checked."""
        return joined(sorted(self.certificate.guarantee.assumes)) or "nothing beside what was proved"


_UNBOUNDED = "No epsilon: nothing bounds what someone with other knowledge can learn about one person from it."


def describe(release: Path, holder: PublisherInfo) -> ReleaseDescription:
    """Read a release's certificate and the tables it names; a missing, strange or changed file is refused."""
    certificate, folder = read_certificate(release), release if release.is_dir() else release.parent
    wrong = next((each for each in check_files(certificate, folder, None) if each.verdict is not Verdict.PASSED), None)
    if wrong is not None:
        raise InvalidParameter(f"{release} is not exported: {wrong.why}. `incrowd verify` says more.")
    beside = {REPORT, *documents_of(certificate)}
    tables = tuple(
        _table(folder / file.name, file)
        for file in certificate.outputs
        if file.name not in beside and Path(file.name).suffix in _TABLES
    )
    own = replace(file_of(release / CERTIFICATE if release.is_dir() else release), name=CERTIFICATE)
    return ReleaseDescription(folder, certificate, holder, (own, *certificate.outputs), tables)


def media_type(name: str) -> str:
    """Return what kind of file a name says it is."""
    return _MEDIA.get(Path(name).suffix, "application/octet-stream")


_TABLES = {".parquet", ".csv", ".tsv", *(f".{each}" for each in STATISTICS)}


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
