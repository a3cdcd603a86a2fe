"""Comparison of two runs of `bench/all`: works that got slower by more than 15 %, relative to what stood beside each.

    scripts/bench compare OLD.json NEW.json

A work with a floor or a peer is compared by its ratio to it; another one by its CPU seconds over those of a fixed piece
of work that `bench/all` measures around it.  Exit 1 if a work got slower or was not measured any more.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SLOWER = 1.15


def relative(row: Mapping[str, Any], floor: float) -> float:
    """Return the CPU seconds of a work over those of what it is compared with.

    >>> relative({"ours": 3.0, "beside": 2.0}, floor=0.5), relative({"ours": 3.0, "beside": None}, floor=0.5)
    (1.5, 6.0)
    """
    return float(row["ours"]) / float(row["beside"] or floor)


def compared(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return a line for each work that got slower, or that the newer run lacks.

    >>> first, second = {"work": "a", "ours": 1.0, "beside": None}, {"work": "b", "ours": 1.0, "beside": 2.0}
    >>> compared({"floor": 1.0, "rows": [first, second]}, {"floor": 2.0, "rows": [first | {"ours": 2.4}]})
    ['a: 1.20 times as long', 'b: not measured']
    """
    now = {row["work"]: relative(row, new["floor"]) for row in new["rows"]}
    lines = []
    for row in old["rows"]:
        before, after = relative(row, old["floor"]), now.get(row["work"])
        if after is None:
            lines.append(f"{row['work']}: not measured")
        elif after > SLOWER * before:
            lines.append(f"{row['work']}: {after / before:.2f} times as long")
    return lines


def main(old: str, new: str) -> int:
    """Print what got slower."""
    lines = compared(*(json.loads(Path(file).read_text(encoding="utf-8")) for file in (old, new)))
    print("\n".join(lines) or f"nothing got slower by more than {SLOWER - 1:.0%}")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
