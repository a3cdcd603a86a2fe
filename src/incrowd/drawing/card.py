"""Card: a result in a notebook, as HTML that is escaped by construction and uses the colors of the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup

from incrowd.drawing.answer import UNDECLARED, RenderedAnswer
from incrowd.drawing.markup import joined, tag, text

_FRAME = (
    "border:1px solid #8888;border-radius:6px;padding:.6em 1em;margin:.2em 0;max-width:46em;overflow-x:auto;"
    "font-family:system-ui,sans-serif;color:inherit;background:none"
)
_CELL = "text-align:{side};vertical-align:top;padding:.15em .8em .15em 0;background:none;color:inherit;border:0"
_LEFT, _RIGHT = _CELL.format(side="left"), _CELL.format(side="right;font-variant-numeric:tabular-nums")
_WHOLE = ";white-space:nowrap"
_LINE = ";border-bottom:1px solid #8888"
_TABLE = "border-collapse:collapse;margin:.4em 0;color:inherit;background:none"
_SMALL = "font-size:.85em;opacity:.75;margin:.4em 0 0"
FIRST_ROWS = 10
"""Rows of a table that are shown; their total number stands below."""
LISTED = 30
"""Rows of an answer that are shown."""


def card(title: str, *parts: Markup, note: str = "") -> str:
    """Return a card: a title in bold, its parts, and a small note.

    >>> "<b>a &lt; b</b>" in card("a < b")
    True
    """
    below = [tag("p", line, style=_SMALL) for line in note.split("\n")] if note else []
    return str(tag("div", tag("div", tag("b", title)), *parts, *below, style=_FRAME))


def answer_card(title: str, answer: RenderedAnswer, notes: Iterable[str], lines: Iterable[tuple[str, str]] = ()) -> str:
    """Return the card of an answer: its first lines, facts about it, and notes."""
    below = [UNDECLARED, *notes] if answer.folded else list(notes)
    rows, last = (answer.lines[:-1], answer.lines[-1:]) if answer.folded else (answer.lines, ())
    below = [f"The first {LISTED} of {len(rows):,} rows.", *below] if len(rows) > LISTED else below
    listed = list(lines)
    parts = [grid(answer.header, (*rows[:LISTED], *last)), *([facts(listed)] if listed else [])]
    return card(title, *parts, note="\n".join(below))


def plain(title: str, lines: Iterable[tuple[str, str]], table: RenderedAnswer | None = None) -> str:
    """Return the same as text, for shells: the first rows of an answer, then names and values.

    >>> print(plain("plan", [("epsilon", "1"), ("note", "first")]))
    plan
      epsilon  1
      note     first
    """
    listed = [(name, value) for name, value in lines]
    width = max((len(name) for name, _ in listed), default=0)
    rows = [] if table is None else [table.header, *table.lines[:LISTED]]
    cells = [list(map(str, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    text_rows = ["  ".join(f"{cell:{size}}" for cell, size in zip(row, widths, strict=True)).rstrip() for row in cells]
    more = [f"… {len(table.lines):,} rows"] if table is not None and len(table.lines) > LISTED else []
    return "\n  ".join([title, *text_rows, *more, *(f"{name:{width}}  {value}" for name, value in listed)])


def facts(lines: Iterable[tuple[str, str]]) -> Markup:
    """Return a table of names and values; a name that repeats the one above is left out."""
    rows, before = [], None
    for name, value in lines:
        heading = tag("th", "" if name == before else name, scope="row", style=_LEFT + _WHOLE)
        rows.append(tag("tr", heading, tag("td", value, style=_LEFT)))
        before = name
    return tag("table", tag("tbody", *rows), style=_TABLE)


def grid(head: Sequence[str], rows: Sequence[Sequence[object]], total: int | None = None) -> Markup:
    """Return a table of cells, with numbers to the right and the `total` number of rows below.

    >>> "3 rows" in grid(["n"], [[7]], 3)
    True
    """
    right = [all(isinstance(row[at], int | float) for row in rows) and bool(rows) for at in range(len(head))]
    sides = [_RIGHT if numeric else _LEFT for numeric in right]
    header = (tag("th", name, scope="col", style=side + _LINE) for name, side in zip(head, sides, strict=True))
    body = (
        tag("tr", *(tag("td", _cell(cell), style=side) for cell, side in zip(row, sides, strict=True))) for row in rows
    )
    table = tag("table", tag("thead", tag("tr", *header)), tag("tbody", *body), style=_TABLE)
    return table if total is None else joined([table, tag("p", f"{total:,} rows", style=_SMALL)])


def _cell(value: object) -> Markup:
    return text("" if value is None else value)
