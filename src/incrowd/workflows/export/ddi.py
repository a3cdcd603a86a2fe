"""DDI: the codebook of social science archives (DDI-Codebook, version 2.5)."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import pyarrow as pa

from incrowd.workflows.export.formats import (
    ColumnDescription,
    Exported,
    PublisherInfo,
    ReleaseDescription,
    TableDescription,
    describe,
)

NAMESPACE = "ddi:codebook:2_5"
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML text may hold."""


def exported(source: Path, publisher: PublisherInfo) -> Exported:
    """Return the description of a release."""
    release = describe(source, publisher)
    return release.exported(document(release))


def document(release: ReleaseDescription) -> str:
    """Return the codebook: study, files and variables."""
    root = Element("codeBook", {"xmlns": NAMESPACE, "version": "2.5"})
    _study(root, release)
    for number, table in enumerate(release.tables, 1):
        _file(root, table, f"F{number}")
    if release.tables:
        data = SubElement(root, "dataDscr")
        for number, table in enumerate(release.tables, 1):
            for place, column in enumerate(table.columns, 1):
                _variable(data, column, f"F{number}", f"F{number}V{place}")
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _study(root: Element, release: ReleaseDescription) -> None:
    study = SubElement(root, "stdyDscr")
    citation = SubElement(study, "citation")
    title = SubElement(citation, "titlStmt")
    _text(title, "titl", release.name)
    _text(title, "IDNo", release.identifier)
    if release.publisher.curator is not None:
        _text(SubElement(citation, "rspStmt"), "AuthEnty", release.publisher.curator)
    produced = SubElement(citation, "prodStmt")
    _text(produced, "prodDate", release.day, date=release.day)
    _text(produced, "software", release.certificate.tool)
    if release.publisher.url is not None:
        _text(citation, "holdings", release.publisher.url, URI=release.publisher.url)
    info = SubElement(study, "stdyInfo")
    _text(info, "abstract", release.summary)
    summary = SubElement(info, "sumDscr")
    if release.certificate.dataset.period is not None:
        _text(summary, "timePrd", release.certificate.dataset.period)
    _text(summary, "anlyUnit", str(release.certificate.guarantee.unit))
    method = SubElement(study, "method")
    _text(method, "notes", release.processing, type="disclosure control")
    if release.publisher.license is not None:
        _text(SubElement(SubElement(study, "dataAccs"), "useStmt"), "conditions", release.publisher.license)
    _text(study, "notes", release.open, type="disclosure control")


def _file(root: Element, table: TableDescription, name: str) -> None:
    file = SubElement(SubElement(root, "fileDscr", {"ID": name}), "fileTxt")
    _text(file, "fileName", table.file.name)
    size = SubElement(file, "dimensns")
    _text(size, "caseQnty", str(table.rows))
    _text(size, "varQnty", str(len(table.columns)))
    _text(file, "fileType", table.file.name.rpartition(".")[2])


def _variable(data: Element, column: ColumnDescription, file: str, name: str) -> None:
    attributes = {"ID": name, "name": _clean(column.name), "files": file}
    numeric = pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_decimal(column.type)
    variable = SubElement(data, "var", attributes | {"intrvl": "contin" if numeric else "discrete"})
    _text(variable, "labl", column.name)
    for value in column.values or ():
        _text(SubElement(variable, "catgry"), "catValu", value)
    SubElement(variable, "varFormat", {"type": "numeric" if numeric else "character"})


def _text(parent: Element, name: str, text: str, **attributes: str) -> None:
    SubElement(parent, name, {key: _clean(value) for key, value in attributes.items()}).text = _clean(text)


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
