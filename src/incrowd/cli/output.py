"""Output: one JSON object for programs, text and tables that fit the terminal for people."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import groupby, zip_longest
from pathlib import Path
from typing import Any, TextIO

Row = Sequence[str]
_MARGIN, _GAP = " ", 3
_LABEL = 30
"""Labels take at most this percentage of the width, unless one word is longer."""
_ITEM = "· "
_TOGETHER = re.compile(
    r"(?<=\d) (?=%)|(?<=±) |(?<=\b[εδρ]) (?=\d)|(?<=\bepsilon) (?=\d)|(?<=\bdelta) (?=\d)|(?<=\b\w) (?== )|(?<= =) "
)
"""Spaces at which a line does not end: before a percent sign, after ±, between a letter and its number."""
_NUMBER = re.compile(r"[-−~]?[\d.,]+(e[-+]?\d+)? ?%?|–|-|")


def width_of(text: str) -> int:
    """Return how many columns of a terminal a text takes.

    >>> width_of("épée"), width_of("東京")
    (4, 4)
    """
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.combining(character) > 0 for character in text)


def lines_of(text: str, width: int) -> list[str]:
    """Return a text in lines of at most that width; a longer word has a line of its own, and stays whole.

    >>> lines_of("no word is split, and 95 % of them stay", 22)
    ['no word is split, and', '95 % of them stay']
    >>> lines_of("· an item whose second line hangs", 20)
    ['· an item whose', '  second line hangs']
    """
    lines: list[str] = []
    for paragraph in text.split("\n"):
        line, start = "", "  " if paragraph.startswith(_ITEM) else ""
        for word, space in _words(paragraph):
            longer = f"{line}{space}{word}" if line else word
            if line and width_of(longer) > width:
                lines.append(line)
                longer = start + word
            line = longer
        lines.append(line)
    return lines


def block(rows: Sequence[Row], width: int, header: Row = ()) -> Iterator[tuple[str, str]]:
    """Yield the lines of a table, each as its first cell and the rest; what is too wide for a grid becomes records.

    >>> for first, rest in block([("k", "20"), ("rule", "a rule of many words")], 18):
    ...     print(first + rest)
     k      20
     rule   a rule of
            many words
    """
    if not header and max(map(len, rows), default=0) == 2:
        yield from _labels(_grouped(rows), width)
        return
    cells = [row for row in (header, *rows) if row]
    widths = _widths(cells, width - len(_MARGIN))
    if widths is not None:
        yield from _grid(rows, header, widths, _gap(cells, widths, width))
    else:
        yield from _records(rows, header, width)


def _words(text: str) -> Iterator[tuple[str, str]]:
    """Yield each word with the space before it; what belongs together is one word."""
    glued = _TOGETHER.sub("\0", text)
    for space, word in re.findall(r"( *)([^ ]+)", glued):
        yield word.replace("\0", " "), space


def _longest(text: str) -> int:
    return max((width_of(word) for part in text.split("\n") for word, _ in _words(part)), default=0)


def _widths(cells: Sequence[Row], width: int) -> list[int] | None:
    """Return how wide each column is, the widest giving way first; None if some word would not fit."""
    columns = [[row[at] for row in cells] for at in range(len(cells[0]))]
    least = [max(map(_longest, column)) for column in columns]
    widths = [max(width_of(part) for cell in column for part in cell.split("\n")) for column in columns]
    room = width - (_GAP - 1) * (len(widths) - 1)
    if sum(least) > room:
        return None
    while sum(widths) > room:
        widest = max((at for at in range(len(widths)) if widths[at] > least[at]), key=lambda at: widths[at])
        widths[widest] -= 1
    return widths


def _gap(cells: Sequence[Row], widths: list[int], width: int) -> str:
    """Return the space between columns: a little less where they are many."""
    return " " * (_GAP if sum(widths) + _GAP * (len(cells[0]) - 1) <= width - len(_MARGIN) else _GAP - 1)


def _grid(rows: Sequence[Row], header: Row, widths: list[int], gap: str) -> Iterator[tuple[str, str]]:
    right = [bool(header) and all(_NUMBER.fullmatch(row[at]) for row in rows) for at in range(len(widths))]
    for row in (header, *rows) if header else rows:
        cells = [lines_of(cell, wide) for cell, wide in zip(row, widths, strict=True)]
        for at in range(max(map(len, cells))):
            parts = [
                _padded(lines[at] if at < len(lines) else "", wide, to_right)
                for lines, wide, to_right in zip(cells, widths, right, strict=True)
            ]
            yield _MARGIN + parts[0], "".join(gap + part for part in parts[1:]).rstrip()


def _labels(rows: Sequence[Row], width: int) -> Iterator[tuple[str, str]]:
    """Yield labels with what they stand for beside them, or below them where a word is too long for that."""
    label = max((width_of(row[0]) for row in rows), default=0)
    label = min(label, max(width * _LABEL // 100, *(_longest(row[0]) for row in rows), 0))
    room = width - len(_MARGIN) - label - _GAP
    for name, text in rows:
        names, beside = lines_of(name, label), _longest(text) <= room
        lines = lines_of(text, room) if beside else []
        for left, right in zip_longest(names, lines, fillvalue=""):
            yield _MARGIN + _padded(left, label), (" " * _GAP + right).rstrip()
        if not beside:
            yield from (("", " " * _GAP + line) for line in lines_of(text, width - _GAP))


def _grouped(rows: Sequence[Row]) -> list[Row]:
    """Return rows of which several that follow each other have one label: it is said once, and each is an item."""
    grouped: list[Row] = []
    for label, group in groupby(rows, key=lambda row: row[0]):
        texts = [text for _, text in group]
        items = [_ITEM + text for text in texts] if label and len(texts) > 1 else texts
        grouped += [(label if at == 0 else "", text) for at, text in enumerate(items)]
    return grouped


def _records(rows: Sequence[Row], header: Row, width: int) -> Iterator[tuple[str, str]]:
    """Yield each row as lines of its own: under its header, or one cell after the other."""
    for number, row in enumerate(rows):
        if number:
            yield "", ""
        if header:
            named = [(name or "", cell) for name, cell in zip(header, row, strict=True) if cell]
            yield from _labels(named, width)
        else:
            first, *rest = lines_of("  ".join(filter(None, row)), width - _GAP)
            yield _MARGIN + first, ""
            yield from (("", " " * _GAP + line) for line in rest)


def _padded(text: str, width: int, to_right: bool = False) -> str:
    space = " " * max(0, width - width_of(text))
    return space + text if to_right else text + space


_FLOAT_NOISE = 1e-12  # a printed loss may be below the stored one by this, and by no more
_NARROWEST, _PROSE = 40, 100


def print_notes(notes: Sequence[str]) -> None:
    """Say how the data is read, beside what is printed."""
    for note in notes:
        print(f"note: {note}.", file=sys.stderr)


def print_json(result: Mapping[str, Any]) -> None:
    """Print one JSON object; what is infinite is null, because JSON has no infinity.

    >>> print_json({"epsilon": math.inf, "k": 20})
    {"epsilon": null, "k": 20}
    """
    print(json.dumps(finite(result), ensure_ascii=False, allow_nan=False))


def print_table(title: str, rows: Iterable[tuple[str, ...]], note: str = "", header: tuple[str, ...] = ()) -> None:
    """Print a titled table, and a sentence below it; no line is wider than the terminal, and no word is split.

    >>> print_table("a guarantee", [("epsilon", "0.5")])
    a guarantee
    <BLANKLINE>
      epsilon   0.5
    <BLANKLINE>
    """
    from incrowd.cli.output import block

    bold = _bold if _styled(sys.stdout) else str
    print_text(title, bold=True)
    print()
    for number, (first, rest) in enumerate(block(list(rows), _width(), header)):
        whole_line = bool(header) and number == 0
        print(bold(first + rest) if whole_line else (bold(first) + rest if rest else bold(first.rstrip())))
    print()
    if note:
        print_text(note)
        print()


def print_text(text: str, *, bold: bool = False) -> None:
    """Print text in lines that fit the terminal.

    >>> print_text("Nothing was asked and nothing was spent.")
    Nothing was asked and nothing was spent.
    """
    style = _bold if bold and _styled(sys.stdout) else str
    for line in wrapped(text):
        print(style(line))


def wrapped(text: str) -> list[str]:
    """Return text in lines that fit the terminal, and are not too long to be read."""
    from incrowd.cli.output import lines_of

    return lines_of(text, min(_width(), _PROSE))


def shown_path(path: Path | str) -> str:
    """Return a path as it is seen from here, if it lies below.

    >>> shown_path(Path.cwd() / "out" / "report.html")
    'out/report.html'
    """
    whole = Path(path).absolute()
    return str(whole.relative_to(Path.cwd())) if whole.is_relative_to(Path.cwd()) else str(path)


def shown_place(address: str) -> str:
    """Return the address of a ledger, or another place, as it is seen from here, if it is a file that lies below.

    >>> shown_place(f"sqlite:///{Path.cwd().as_posix()}/.incrowd/ledger.sqlite")
    'sqlite:///.incrowd/ledger.sqlite'
    >>> shown_place("postgresql://me@host/privacy")
    'postgresql://me@host/privacy'
    """
    start, colon, path = address.rpartition(":///")
    return f"{start}{colon}{shown_path(path)}" if colon else address


def loss_text(number: float, digits: int = 6) -> str:
    """Return a loss for people, rounded up to so many significant digits; a relative 10⁻¹² is a float's noise.

    >>> loss_text(2.631783466e-11), loss_text(0.5), loss_text(0.1 * 3), loss_text(0.0), loss_text(math.inf)
    ('2.63179e-11', '0.5', '0.3', '0', 'no bound')
    >>> loss_text(1e-6)
    '1e-6'
    """
    if math.isinf(number):
        return "no bound"
    if number == 0.0:
        return "0"
    text = f"{number:.{digits}g}"
    if float(text) < number * (1.0 - _FLOAT_NOISE):
        step = 10.0 ** (math.floor(math.log10(abs(number))) - digits + 1)
        text = f"{number + step / 2:.{digits}g}"
    return text.replace("e-0", "e-")


def cost_text(epsilon: str, delta: str) -> str:
    """Return what a release cost, for people; without an ε there is no number.

    >>> cost_text("0.98856673", "1E-6"), cost_text("Infinity", "0")
    ('epsilon 0.988567, delta 1e-6', 'no bound on the privacy loss')
    """
    from incrowd.core.words import short_up

    if not Decimal(epsilon).is_finite():
        return "no bound on the privacy loss"
    return f"epsilon {short_up(Decimal(epsilon), 6)}, delta {short_up(Decimal(delta), 6)}"


def _width() -> int:
    return max(_NARROWEST, shutil.get_terminal_size((80, 24)).columns)


def _styled(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _bold(text: str) -> str:
    return f"\x1b[1m{text}\x1b[0m" if text.strip() else text


def finite(value: Any) -> Any:
    """Return a value as JSON has it: what is infinite, or no number, is null."""
    if isinstance(value, Mapping):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
