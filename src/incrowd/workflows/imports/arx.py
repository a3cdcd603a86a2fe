"""ARX: a project file (`.deid`), a zip archive of XML and CSV; what ARX serialized for Java is not read.

Only members with known names are read, each up to a limit, and no name of the archive or of the XML becomes a path.
"""

from __future__ import annotations

import csv
import io
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast
from xml.parsers import expat

from incrowd.core.domain import Type
from incrowd.core.hierarchy.tree import TreeHierarchy, parse_arx
from incrowd.core.schema import written_as
from incrowd.errors import InvalidParameter, SourceUnreadable
from incrowd.workflows.imports.project import ImportedColumn, ImportedProject, decoded, unreadable

MEMBERS, XML_BYTES, HIERARCHY_BYTES = 4096, 1 << 22, 1 << 26
"""Limits on the members of an archive, and on the bytes of one XML document and one hierarchy."""
DATA_BYTES, DATA_RATIO = 1 << 26, 50
"""Data may be so large, or so many times larger than it is in the archive."""
MOST_COLUMNS, MOST_FIELDS, MOST_VALUES = 1000, 100, 1000
_ROLES = {
    "IDENTIFYING_ATTRIBUTE": "identifier",
    "QUASI_IDENTIFYING_ATTRIBUTE": "quasi",
    "SENSITIVE_ATTRIBUTE": "sensitive",
    "INSENSITIVE_ATTRIBUTE": "plain",
}
_TYPES = {"Integer": "integer", "Decimal": "decimal", "Date": "date"}
_K = re.compile(r"(\d{1,9})-anonymity")
_DISTINCT = re.compile(r"distinct-(\d{1,6})-diversity for attribute '(.*)'")
_ENTROPY = re.compile(r"(?:shannon-entropy|entropy)-(\d+(?:\.\d+)?)-diversity for attribute '(.*)'")
_CLOSENESS = re.compile(
    r"(\d+(?:\.\d+)?)-closeness with (equal|hierarchical|ordered)[ -]?\w* ?\w*-?distance for attribute '(.*)'"
)
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError)


def read_arx(path: Path, *, limited: bool = True) -> ImportedProject:
    """Read a project; what has no counterpart here is listed, and nothing of it is guessed."""
    try:
        with zipfile.ZipFile(path) as archive:
            return _project(_Archive(path, archive, limited))
    except _BROKEN as error:
        if isinstance(error, OSError) and not isinstance(error, zipfile.BadZipFile) and error.strerror:
            raise unreadable(path, error.strerror) from None
        raise unreadable(path, "this is not an ARX project, or it is damaged") from None


@dataclass(frozen=True)
class _Archive:
    """A zip archive, read member by member within limits."""

    path: Path
    archive: zipfile.ZipFile
    limited: bool

    def __post_init__(self) -> None:
        if len(self.archive.infolist()) > MEMBERS:
            raise unreadable(self.path, f"its archive has more than {MEMBERS:,} members")

    def read(self, name: str, limit: int) -> bytes | None:
        """Return the content of a member, None if there is none."""
        try:
            info = self.archive.getinfo(name)
        except KeyError:
            return None
        with self.archive.open(info) as member:
            content = member.read(limit + 1)
        if len(content) > limit:
            raise unreadable(self.path, f"one of its parts is larger than {limit:,} bytes")
        return content

    def document(self, name: str) -> _Element:
        """Return an XML document without entities."""
        content = self.read(name, XML_BYTES)
        if content is None:
            raise unreadable(self.path, f"it has no {name}")
        return _parsed(content, self.path)

    def data(self) -> BinaryIO:
        """Open the rows, in an archive of their own; unpacked data beyond the limit is refused while it is read."""
        archive = zipfile.ZipFile(self.path)
        info = archive.getinfo("data/input.csv")
        most = max(DATA_BYTES, DATA_RATIO * info.compress_size) if self.limited else None
        return _Limited(archive.open(info), most, self.path)


class _Limited(io.RawIOBase, BinaryIO):
    """Bytes of a member, up to a limit."""

    def __init__(self, member: Any, most: int | None, path: Path) -> None:
        self._member, self._left, self._path = member, most, path

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self.read(len(buffer))
        buffer[: len(block)] = block
        return len(block)

    def read(self, size: int = -1) -> bytes:
        try:
            block: bytes = self._member.read(size)
        except _BROKEN:
            raise unreadable(self._path, "its data is damaged") from None
        if self._left is not None:
            self._left -= len(block)
            if self._left < 0:
                raise unreadable(
                    self._path,
                    f"its data is over {DATA_RATIO} times larger than in the archive; --no-limits lifts that",
                )
        return block

    def close(self) -> None:
        self._member.close()
        super().close()


@dataclass
class _Element:
    """An element of XML with its text and its children."""

    name: str
    text: str
    children: list[_Element]

    def of(self, name: str) -> Iterator[_Element]:
        return (child for child in self.children if child.name == name)

    def value(self, name: str, default: str = "") -> str:
        return next((child.text.strip() for child in self.of(name)), default)


def _parsed(content: bytes, path: Path) -> _Element:
    """Parse XML into elements; declarations of types and entities are refused, and so is depth."""
    root = _Element("", "", [])
    stack = [root]

    def start(name: str, _attributes: Mapping[str, str]) -> None:
        if len(stack) > MOST_FIELDS or len(stack[-1].children) > MOST_COLUMNS:
            raise unreadable(path, "its XML has too many elements")
        stack.append(_Element(name, "", []))
        stack[-2].children.append(stack[-1])

    def end(_name: str) -> None:
        stack.pop()

    def text(characters: str) -> None:
        stack[-1].text += characters

    def refuse(*_declared: object) -> None:
        raise unreadable(path, "its XML declares a document type or entities")

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, text
    parser.StartDoctypeDeclHandler = parser.EntityDeclHandler = refuse
    try:
        parser.Parse(content, True)
    except expat.ExpatError:
        raise unreadable(path, "its XML is broken") from None
    return root.children[0] if root.children else root


def _project(archive: _Archive) -> ImportedProject:
    project, config = archive.document("project.xml"), archive.document("input/config.xml")
    assigned = list(archive.document("input/definition.xml").of("assigment"))
    if not assigned:
        raise unreadable(archive.path, "it defines no columns")
    separator = project.value("separator", ";")[:1] or ";"
    left_out: list[str] = []
    columns = tuple(_column(element, archive, separator, left_out) for element in assigned)
    has_data = "data/input.csv" in archive.archive.namelist()
    if has_data:
        columns = _listed(columns, archive, separator, left_out)
    else:
        left_out.append("data, which is not in the archive: put it beside the policy as data.csv")
    release = _release(config, columns, left_out) | _levels(assigned, columns, left_out)
    name = project.value("name") or archive.path.stem
    data = archive.data if has_data else None
    return ImportedProject("an ARX project", name, columns, release, {"delimiter": separator}, data, tuple(left_out))


def _column(element: _Element, archive: _Archive, separator: str, left_out: list[str]) -> ImportedColumn:
    name, role = element.value("name"), _ROLES.get(element.value("type"))
    if not name or role is None:
        raise unreadable(archive.path, "a column has no name, or a role that ARX does not have")
    kind = _TYPES.get(element.value("datatype"), "text")
    hierarchy = None if role == "identifier" else _hierarchy(element, archive, separator)
    if hierarchy is not None:
        whole = all(written_as(row[0], Type(kind)) == row[0] for row in hierarchy.rows)
        section = {"role": role, "type": kind if whole else "text"}
        return ImportedColumn(name, section, hierarchy.rows)
    if role == "quasi":
        left_out.append(f"a hierarchy of {name!r}: there is none")
    if kind == "date":
        left_out.append(f"the format of days in {name!r}: declare dates: under source: if it is not 2024-12-31")
    return ImportedColumn(name, {"role": role, "type": kind})


def _listed(
    columns: tuple[ImportedColumn, ...], archive: _Archive, separator: str, left_out: list[str]
) -> tuple[ImportedColumn, ...]:
    """Return the columns, those of free text with the values that the data has: ARX would publish them as they are."""
    free = [c.name for c in columns if c.hierarchy is None and c.section == {"role": c.section["role"], "type": "text"}]
    free = [name for name in free if name not in {c.name for c in columns if c.section["role"] == "identifier"}]
    values = _values(archive, free, separator) if free else {}
    listed = []
    for column in columns:
        section = dict(column.section)
        if column.name in values and 0 < len(values[column.name]) <= MOST_VALUES:
            section |= {"categories": sorted(values[column.name]), "derived": "rows"}
        elif column.name in free:
            section["role"] = "withheld"
            left_out.append(f"values of {column.name!r}, which are free text: it is withheld")
        listed.append(ImportedColumn(column.name, section, column.hierarchy))
    return tuple(listed)


def _values(archive: _Archive, names: list[str], separator: str) -> dict[str, set[str]]:
    """Return the different values of some columns, a few more than the most at most."""
    with archive.data() as data:
        text = io.TextIOWrapper(cast("BinaryIO", io.BufferedReader(cast("io.RawIOBase", data))), "utf-8-sig", "replace")
        rows = csv.reader(text, delimiter=separator)
        try:
            header = next(rows, [])
            places = {name: header.index(name) for name in names if name in header}
            values: dict[str, set[str]] = {name: set() for name in places}
            for row in rows:
                for name, place in places.items():
                    if place < len(row) and row[place] and len(values[name]) <= MOST_VALUES:
                        values[name].add(row[place])
        except csv.Error:
            raise unreadable(archive.path, "its data is not a table") from None
    return values


def _hierarchy(element: _Element, archive: _Archive, separator: str) -> TreeHierarchy | None:
    reference = element.value("ref")
    if ".." in reference:
        raise unreadable(archive.path, "it names a file outside of the archive")
    content = archive.read(f"input/{reference}", HIERARCHY_BYTES) if reference else None
    if content is None or not content.strip():
        return None
    try:
        return parse_arx(decoded(content), separator).hierarchy()
    except InvalidParameter as error:
        raise SourceUnreadable(f"{archive.path.name} cannot be imported: a hierarchy is invalid: {error}") from None


def _release(config: _Element, columns: tuple[ImportedColumn, ...], left_out: list[str]) -> dict[str, Any]:
    """Return the release section: ARX's criteria as its own texts name them."""
    share = config.value("relativeMaxOutliers", "0")
    release: dict[str, Any] = {"method": "full-domain", "k": None}
    sensitive: dict[str, dict[str, Any]] = {}
    for element in next(config.of("criteria"), _Element("", "", [])).of("criterion"):
        text = element.text.strip()
        if match := _K.fullmatch(text):
            release["k"] = max(2, int(match[1]))
        elif match := _DISTINCT.fullmatch(text):
            sensitive.setdefault(match[2], {})["l"] = match[1]
        elif match := _ENTROPY.fullmatch(text):
            sensitive.setdefault(match[2], {})["entropy_l"] = match[1]
        elif match := _CLOSENESS.fullmatch(text):
            distance = {"hierarchical": {"distance": "hierarchical"}}.get(match[2], {})
            sensitive.setdefault(match[3], {}).update({"t": match[1], **distance})
        elif text != "Inclusion":  # a sample of the rows, which is no criterion
            left_out.append(f"the criterion {text!r}: choose one of incrowd's")
    sensitive_names = {column.name for column in columns if column.section["role"] == "sensitive"}
    left_out += [f"criteria for {name!r}, which is not sensitive" for name in sensitive if name not in sensitive_names]
    if release["k"] is None:
        left_out.append("k-anonymity, which the project does not demand: k is 2 here, choose it")
    release |= {"k": str(release["k"] or 2), "suppression": share if re.fullmatch(r"[01](\.\d{1,6})?", share) else "0"}
    demanded = {name: rules for name, rules in sensitive.items() if name in sensitive_names}
    return release | ({"sensitive": demanded} if demanded else {})


def _levels(
    assigned: list[_Element], columns: tuple[ImportedColumn, ...], left_out: list[str]
) -> dict[str, dict[str, str]]:
    """Return the finest levels; ARX's limits on the coarsest have no counterpart."""
    lowest: dict[str, str] = {}
    for element, column in zip(assigned, columns, strict=True):
        least, most = element.value("min", "All"), element.value("max", "All")
        if least.isdecimal() and len(least) < 3 and int(least) and column.section["role"] == "quasi":
            lowest[column.name] = least
        if most != "All":
            left_out.append(f"the coarsest level {most[:9]!r} of {column.name!r}")
    return {"lowest": lowest} if lowest else {}
