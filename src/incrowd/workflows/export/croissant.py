"""Croissant: the description of a dataset that catalogues of machine learning read (MLCommons, version 1.0).

The steps, what is guaranteed and what stays open are told in the vocabulary for responsible AI, version 1.0.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from incrowd.core.certificate import File
from incrowd.workflows.export.description import (
    ColumnDescription,
    ReleaseDescription,
    TableDescription,
    describe,
    media_type,
)
from incrowd.workflows.export.formats import Exported, PublisherInfo

_NAMES = {
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
"""The words of the form, each with what it stands for."""


def exported(source: Path, holder: PublisherInfo) -> Exported:
    """Return the description of a release."""
    release = describe(source, holder)
    return release.exported(document(release))


def document(release: ReleaseDescription) -> dict[str, Any]:
    """Return the description; addresses of files are their names, so it is published beside them."""
    held = release.holder
    named = {
        "license": held.license,
        "url": held.url,
        "version": release.certificate.dataset.version,
        "creator": None if held.curator is None else {"@type": "sc:Organization", "name": held.curator},
    }
    return {
        "@context": {"@language": "en", "@vocab": "https://schema.org/", **_NAMES},
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
        "distribution": [_file(each) for each in release.files],
        "recordSet": [_rows(each) for each in release.tables],
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
    fields = [_field(name, table.file.name, number, each) for number, each in enumerate(table.columns, 1)]
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
