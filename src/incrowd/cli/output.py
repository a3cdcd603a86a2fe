"""How results are shown: one JSON object for programs, a table for people."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

_FLOAT_NOISE = 1e-12


def print_json(result: Mapping[str, Any]) -> None:
    """Print one JSON object; what is infinite is null, because JSON has no infinity.

    >>> print_json({"epsilon": math.inf, "k": 20})
    {"epsilon": null, "k": 20}
    """
    print(json.dumps(_finite(result), ensure_ascii=False, allow_nan=False))


def print_table(title: str, rows: Iterable[tuple[str, ...]], note: str = "", header: tuple[str, ...] = ()) -> None:
    """Print a titled table, and a sentence below it.

    >>> print_table("a promise", [("epsilon", "0.5")])
    a promise
    <BLANKLINE>
      epsilon   0.5
    <BLANKLINE>
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(show_header=bool(header), box=None, padding=(0, 2, 0, 1))
    lines = list(rows)
    for position in range(len(header) or len(lines[0])):
        table.add_column(header[position] if header else "", style="bold" if position == 0 else "", overflow="fold")
    for line in lines:
        table.add_row(*(Text(cell) for cell in line))
    console = Console(highlight=False, soft_wrap=False)
    console.print(Text(title, style="bold"))
    console.print()
    console.print(table)
    console.print()
    if note:
        console.print(Text(note))


def loss_text(number: float, digits: int = 6) -> str:
    """Return a loss for people, rounded up to so many significant digits; a relative 10⁻¹² is a float's noise.

    >>> loss_text(2.631783466e-11), loss_text(0.5), loss_text(0.1 * 3), loss_text(0.0), loss_text(math.inf)
    ('2.63179e-11', '0.5', '0.3', '0', 'infinite')
    """
    if math.isinf(number):
        return "infinite"
    if number == 0.0:
        return "0"
    text = f"{number:.{digits}g}"
    if float(text) < number * (1.0 - _FLOAT_NOISE):
        step = 10.0 ** (math.floor(math.log10(abs(number))) - digits + 1)
        text = f"{number + step / 2:.{digits}g}"
    return text


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
