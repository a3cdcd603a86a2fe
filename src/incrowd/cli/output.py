"""How results are shown: one JSON object for programs, text and tables for people."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

_FLOAT_NOISE = 1e-12
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
    from incrowd.cli.layout import block

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
    from incrowd.cli.layout import lines_of

    return lines_of(text, min(_width(), _PROSE))


def shown_path(path: Path | str) -> str:
    """Return a path as it is seen from here, if it lies below.

    >>> shown_path(Path.cwd() / "out" / "report.html")
    'out/report.html'
    """
    whole = Path(path).absolute()
    return str(whole.relative_to(Path.cwd())) if whole.is_relative_to(Path.cwd()) else str(path)


def loss_text(number: float, digits: int = 6) -> str:
    """Return a loss for people, rounded up to so many significant digits; a relative 10⁻¹² is a float's noise.

    >>> loss_text(2.631783466e-11), loss_text(0.5), loss_text(0.1 * 3), loss_text(0.0), loss_text(math.inf)
    ('2.63179e-11', '0.5', '0.3', '0', 'no bound')
    """
    if math.isinf(number):
        return "no bound"
    if number == 0.0:
        return "0"
    text = f"{number:.{digits}g}"
    if float(text) < number * (1.0 - _FLOAT_NOISE):
        step = 10.0 ** (math.floor(math.log10(abs(number))) - digits + 1)
        text = f"{number + step / 2:.{digits}g}"
    return text


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
