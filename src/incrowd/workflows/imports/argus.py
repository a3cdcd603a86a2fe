"""τ-ARGUS: metadata of microdata (`.rda`, plain text), with its code lists and hierarchies beside it.

A file that the metadata names is looked for beside it, by its last name alone: a path into another folder is refused.
"""

from __future__ import annotations

import csv
import io
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

from incrowd.engines.regular_file import open_regular
from incrowd.workflows.imports.project import ImportedColumn, ImportedProject, decoded, unreadable

TEXT_BYTES, LINE_BYTES, MOST_VARIABLES, MOST_CODES = 1 << 22, 1 << 16, 1000, 100_000
_TAG = re.compile(r"<([A-Z]+)>\s*(.*)")
_TABLE_COLUMNS = 3


@dataclass
class _Variable:
    """A variable: its place in a line, its codes for missing values, and its tags."""

    name: str
    start: int
    length: int
    missing: tuple[str, ...]
    tags: dict[str, str] = field(default_factory=dict)

    @property
    def role(self) -> str:
        if "WEIGHT" in self.tags:
            return "weight"
        if "HOLDING" in self.tags:
            return "identifier"
        return "sensitive" if "NUMERIC" in self.tags else "quasi"


def read_argus(path: Path, data: Path | None) -> ImportedProject:
    """Read metadata, and open the microdata that it describes if that is named."""
    separator, variables = _variables(path)
    left_out = ["rules of sensitivity, which metadata does not hold: minimum: 3 is a start, choose your own"]
    if data is None:
        left_out.append("data: name it with --data, or put it beside the policy as data.csv")
    columns = tuple(_column(variable, path, left_out) for variable in variables)
    release = _release(variables, left_out)
    names = [variable.name for variable in variables]
    opened = None if data is None else lambda: _Rows(data, variables, separator, path)
    reading: dict[str, Any] = {"delimiter": ","}
    if len(set(names)) < len(names):
        raise unreadable(path, "two variables have the same name")
    return ImportedProject(
        "τ-ARGUS metadata", path.stem, columns, release, reading, opened, tuple(left_out), "tables of magnitudes"
    )


def _text(path: Path, place: Path) -> str:
    try:
        with open_regular(place, through_link=False) as file:
            content = file.read(TEXT_BYTES + 1)
    except OSError as error:
        raise unreadable(path, f"{place.name} cannot be read: {error.strerror or 'no reason given'}") from None
    if len(content) > TEXT_BYTES or b"\0" in content:
        raise unreadable(path, f"{place.name} is too large, or not text")
    return decoded(content)


def _beside(path: Path, written: str) -> Path:
    """Return the file of that name beside the metadata; Windows paths to the same folder are common."""
    name = written.strip().strip('"')
    plain = re.split(r"[\\/]", name)
    if ".." in plain or plain[-1] in ("", "."):
        raise unreadable(path, "it names a file in another folder: put all files beside it, and name them alone")
    return path.parent / plain[-1]


def _variables(path: Path) -> tuple[str | None, list[_Variable]]:
    separator: str | None = None
    variables: list[_Variable] = []
    for line in _text(path, path).splitlines():
        text = line.strip()
        match = _TAG.match(text)
        if match and match[1] == "SEPARATOR" and not variables:
            separator = match[2].strip().strip('"')[:1] or ","
        elif match and variables:
            variables[-1].tags[match[1]] = match[2].strip()
        elif text and not match:
            variables.append(_variable(text, path, fixed=separator is None))
        if len(variables) > MOST_VARIABLES:
            raise unreadable(path, f"it has more than {MOST_VARIABLES:,} variables")
    if not variables:
        raise unreadable(path, "it defines no variables; R's own .rda files are another format")
    return separator, variables


def _variable(text: str, path: Path, *, fixed: bool) -> _Variable:
    try:
        name, *words = shlex.split(text)
        numbers = [int(word) for word in words[: 1 + fixed]]
    except ValueError:
        raise unreadable(path, "a variable has no name, or its position is not a number") from None
    if fixed and (len(numbers) < 2 or numbers[0] < 1 or not 1 <= numbers[1] <= LINE_BYTES):
        raise unreadable(path, "a variable of fixed format has a name, its first position and its length")
    start, length = (numbers[0] - 1, numbers[1]) if fixed else (0, 0)
    return _Variable(name, start, length, tuple(dict.fromkeys(words[1 + fixed :])))


def _column(variable: _Variable, path: Path, left_out: list[str]) -> ImportedColumn:
    section: dict[str, Any] = {"role": variable.role}
    if variable.role in ("weight", "sensitive"):
        section["type"] = "decimal"
    if variable.missing and variable.role != "identifier":
        section["clean"] = {"missing": list(variable.missing)}
    if variable.role != "quasi":
        return ImportedColumn(variable.name, section)
    if "HIERCODELIST" in variable.tags:
        lead = variable.tags.get("HIERLEADSTRING", '"@"').strip().strip('"') or "@"
        rows = _tree(_text(path, _beside(path, variable.tags["HIERCODELIST"])), lead, path)
        return ImportedColumn(variable.name, section, rows)
    if "HIERLEVELS" in variable.tags:
        digits = [int(word) for word in variable.tags["HIERLEVELS"].split() if word.isdecimal()]
        lengths = [sum(digits[:place]) for place in range(len(digits) - 1, 0, -1) if digits[place]]
        section["hierarchy"] = {"prefix": [str(length) for length in lengths if length]} if any(lengths) else None
    elif "CODELIST" in variable.tags:
        lines = csv.reader(_text(path, _beside(path, variable.tags["CODELIST"])).splitlines())
        codes = dict.fromkeys(line[0].strip() for line in lines if line and line[0].strip())
        section |= {"categories": list(codes), "derived": "rows"}
    else:
        left_out.append(f"the codes of {variable.name!r}: declare categories or a hierarchy")
    return ImportedColumn(variable.name, {key: value for key, value in section.items() if value})


def _tree(text: str, lead: str, path: Path) -> list[list[str]]:
    """Return the rows of a hierarchy: each code without others below it, then what is above it."""
    nodes: list[tuple[int, str]] = []
    for line in text.splitlines():
        code = line.rstrip()
        depth = 0
        while code.startswith(lead):
            code, depth = code[len(lead) :], depth + 1
        if code.strip():
            nodes.append((depth, code.strip()))
    if not nodes or len(nodes) > MOST_CODES or any(low[0] > high[0] + 1 for high, low in pairwise(nodes)):
        raise unreadable(path, "a hierarchy is empty, too large, or skips a level")
    above: list[str] = []
    rows = []
    for place, (depth, code) in enumerate(nodes):
        above = [*above[:depth], code]
        if place + 1 == len(nodes) or nodes[place + 1][0] <= depth:
            rows.append([code, *reversed(above[:-1])])
    width = max(map(len, rows))
    return [row + [row[-1]] * (width - len(row)) for row in rows]


def _release(variables: list[_Variable], left_out: list[str]) -> dict[str, Any]:
    spanning = [variable.name for variable in variables if variable.role == "quasi"]
    values = [variable.name for variable in variables if variable.role == "sensitive"]
    if len(spanning) > _TABLE_COLUMNS:
        left_out.append(f"tables: {', '.join(map(repr, spanning[:_TABLE_COLUMNS]))} span the first one, choose yours")
    release: dict[str, Any] = {"method": "protected-table", "columns": spanning[:_TABLE_COLUMNS], "minimum": "3"}
    return release | ({"value": values[0]} if values else {})


class _Rows(io.RawIOBase, BinaryIO):
    """Microdata as CSV with a header: lines of fixed format are cut, those of free format are split."""

    def __init__(self, data: Path, variables: list[_Variable], separator: str | None, path: Path) -> None:
        self._variables, self._separator, self._path = variables, separator, path
        try:
            self._file = open_regular(data, through_link=True)
        except OSError as error:
            raise unreadable(data, error.strerror or "no reason given") from None
        self._lines = self._written()

    def read(self, _size: int = -1) -> bytes:
        return next(self._lines, b"")

    def close(self) -> None:
        self._file.close()
        super().close()

    def _written(self) -> Iterator[bytes]:
        yield _line([variable.name for variable in self._variables])
        number = 0
        while content := self._file.readline(LINE_BYTES + 1):
            number += 1
            if len(content) > LINE_BYTES:
                raise unreadable(self._path, f"line {number:,} of the data is too long")
            if content.strip():
                yield _line(self._cells(decoded(content.rstrip(b"\r\n")), number))

    def _cells(self, text: str, number: int) -> list[str]:
        if self._separator is None:
            return [text[variable.start : variable.start + variable.length].strip() for variable in self._variables]
        cells = [cell.strip() for cell in next(csv.reader([text], delimiter=self._separator))]
        if len(cells) != len(self._variables):
            raise unreadable(self._path, f"line {number:,} of the data has another number of cells than variables")
        return cells


def _line(cells: list[str]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue().encode()
