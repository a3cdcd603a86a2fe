"""Croissant: the description of a dataset for machine learning catalogs (MLCommons, version 1.0).

The steps, the guarantee and its limits use the vocabulary for responsible AI, version 1.0.
"""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyarrow as pa

from incrowd.core.certificate import File
from incrowd.workflows.export.formats import (
    ColumnDescription,
    Exported,
    PublisherInfo,
    ReleaseDescription,
    TableDescription,
    describe,
    media_type,
)


def exported(source: Path, publisher: PublisherInfo) -> Exported:
    """Return the description of a release."""
    release = describe(source, publisher)
    return release.exported(document(release))


def document(release: ReleaseDescription) -> dict[str, Any]:
    """Return the description; addresses of files are their names, so publish it in the same folder."""
    publisher = release.publisher
    context = json.loads((files("incrowd.workflows.export") / "croissant_context.json").read_text(encoding="utf-8"))
    named = {
        "license": publisher.license,
        "url": publisher.url,
        "version": release.certificate.dataset.version,
        "creator": None if publisher.curator is None else {"@type": "sc:Organization", "name": publisher.curator},
    }
    return {
        "@context": {"@language": "en", "@vocab": "https://schema.org/", **context},
        "@type": "sc:Dataset",
        "conformsTo": ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"],
        "name": release.name,
        "description": release.summary,
        "identifier": release.identifier,
        "datePublished": release.day,
        **{key: value for key, value in named.items() if value is not None},
        "rai:dataPreprocessingProtocol": release.processing,
        "rai:personalSensitiveInformation": f"{release.summary} Assumed: {release.assumptions}.",
        "rai:dataLimitations": release.open,
        "distribution": [_file(item) for item in release.files],
        "recordSet": [_rows(item) for item in release.tables],
    }


def _file(file: File) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": file.name,
        "name": file.name,
        "contentUrl": file.name,
        "contentSize": f"{file.bytes} B",
        "encodingFormat": media_type(file.name),
        "sha256": file.sha256,
    }


def _rows(table: TableDescription) -> dict[str, Any]:
    name = f"{table.file.name}/rows"
    fields = [_field(name, table.file.name, number, column) for number, column in enumerate(table.columns, 1)]
    return {"@type": "cr:RecordSet", "@id": name, "name": name, "field": fields}


def _field(rows: str, file: str, number: int, column: ColumnDescription) -> dict[str, Any]:
    return {
        "@type": "cr:Field",
        "@id": f"{rows}/{number}",
        "name": column.name,
        "dataType": _type(column.type),
        "source": {"fileObject": {"@id": file}, "extract": {"column": column.name}},
    }


def _type(kind: pa.DataType) -> str:
    if pa.types.is_boolean(kind):
        return "sc:Boolean"
    if pa.types.is_integer(kind):
        return "sc:Integer"
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "sc:Float"
    return "sc:Date" if pa.types.is_temporal(kind) else "sc:Text"
