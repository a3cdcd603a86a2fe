"""Hierarchies as ARX writes them: one line per value, the value first, then its label on each level; no header."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, replace
from typing import Literal

from incrowd.core.domain import DECLARED, Provenance
from incrowd.core.hierarchy.hierarchy import Hierarchy
from incrowd.core.hierarchy.tree import TreeHierarchy
from incrowd.errors import InvalidParameter

_OTHERS = {",": "a comma", "\t": "a tab", "|": "a bar", ";": "a semicolon"}


@dataclass(frozen=True)
class ArxStyle:
    """How the lines are written, kept so that a file that is read and written again stays the same bytes."""

    delimiter: str = ";"
    newline: str = "\n"
    ends_with_newline: bool = True
    all_quoted: bool = False
    byte_order_mark: bool = False


@dataclass(frozen=True)
class ArxTable:
    r"""The lines of a hierarchy file.

    >>> text = "Paris;France;*\nKyoto;Japan;*\n"
    >>> parse(text).hierarchy().labels(1)
    ('France', 'Japan')
    >>> parse(text).text() == text
    True
    """

    rows: tuple[tuple[str, ...], ...]
    style: ArxStyle = ArxStyle()

    def hierarchy(self, provenance: Provenance = DECLARED) -> TreeHierarchy:
        """Return the hierarchy these lines declare."""
        return TreeHierarchy(self.rows, provenance)

    def text(self) -> str:
        """Return the content of the file."""
        style, out = self.style, io.StringIO()
        quoting: Literal[0, 1] = csv.QUOTE_ALL if style.all_quoted else csv.QUOTE_MINIMAL
        writer = csv.writer(out, delimiter=style.delimiter, lineterminator=style.newline, quoting=quoting)
        writer.writerows(self.rows)
        content = out.getvalue()
        if not style.ends_with_newline:
            content = content.removesuffix(style.newline)
        return ("\ufeff" if style.byte_order_mark else "") + content


def parse(text: str, delimiter: str = ";") -> ArxTable:
    r"""Read the content of a hierarchy file.

    >>> parse("a,x\nb,x\n", delimiter=",").rows
    (('a', 'x'), ('b', 'x'))
    """
    content = text.removeprefix("\ufeff")
    try:
        lines = csv.reader(io.StringIO(content, newline=""), delimiter=delimiter, strict=True)
        rows = tuple(tuple(row) for row in lines if row)
    except csv.Error as error:
        raise InvalidParameter(f"this hierarchy is not a table separated by {delimiter!r}: {error}.") from error
    if not rows:
        raise InvalidParameter("this hierarchy is empty: give one line per value, the value first.")
    if all(len(row) == 1 for row in rows):
        meant = [name for other, name in _OTHERS.items() if other != delimiter and all(other in r[0] for r in rows)]
        if meant:
            raise InvalidParameter(f"no line contains {delimiter!r}, but all contain {meant[0]}: name that delimiter.")
    newline = "\r\n" if "\r\n" in content else "\n"
    style = ArxStyle(delimiter, newline, content.endswith(newline), byte_order_mark=content != text)
    table = ArxTable(rows, style)
    quoted = replace(table, style=replace(style, all_quoted=True))
    return quoted if quoted.text() == text != table.text() else table


def table_of(hierarchy: Hierarchy) -> ArxTable:
    """List a hierarchy for ARX, every level included; its values must be declared, so that they can be listed.

    >>> from incrowd.core.domain import Numbers
    >>> from incrowd.core.hierarchy.intervals import Intervals
    >>> print(table_of(Intervals(Numbers(1, 4), (2,))).text(), end="")
    1;[1, 3);*
    2;[1, 3);*
    3;[3, 5);*
    4;[3, 5);*
    """
    values = hierarchy.members(0)
    if values is None:
        raise InvalidParameter(
            f"a hierarchy of any value at all ({hierarchy.rule}) cannot be listed: declare categories or bounds."
        )
    levels = range(hierarchy.height + 1)
    columns = [hierarchy.names(hierarchy.lift(values, level), level).to_pylist() for level in levels]
    return ArxTable(tuple(zip(*columns, strict=True)))
