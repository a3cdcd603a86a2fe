"""Comparison of two runs of `bench/all`: how long each work takes now, relative to what stood beside it.

    scripts/bench compare [REVISION [BENCH ...]]    measures another revision, by default the last tag, and this tree
    scripts/bench compare OLD.json NEW.json

A work with a floor or a peer is compared by its ratio to it; another one by its CPU seconds over those of a fixed piece
of work that `bench/all` measures around it.  Exit 1 if a work got slower by more than 15 % or was not measured again.
"""

from __future__ import annotations

import json
import math
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


def ratios(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, float | None]:
    """Return for each work how long it takes now, as a part of what it took; None where it was not measured any more.

    >>> first, second = {"work": "a", "ours": 1.0, "beside": None}, {"work": "b", "ours": 1.0, "beside": 2.0}
    >>> ratios({"floor": 1.0, "rows": [first, second]}, {"floor": 2.0, "rows": [first | {"ours": 2.4}]})
    {'a': 1.2, 'b': None}
    """
    before = {row["work"]: relative(row, old["floor"]) for row in old["rows"]}
    now = {row["work"]: relative(row, new["floor"]) for row in new["rows"]}
    return {work: now[work] / took if work in now else None for work, took in before.items()}


def main(old: str, new: str) -> int:
    """Print every work, those that got slower last."""
    documents = (json.loads(Path(file).read_text(encoding="utf-8")) for file in (old, new))
    works = sorted(ratios(*documents).items(), key=lambda item: item[1] or math.inf)
    for work, ratio in works:
        print(f"{'not measured' if ratio is None else f'{ratio:.2f} times as long':>20}  {work}")
    slower = sum(ratio is None or ratio > SLOWER for _, ratio in works)
    print(f"\n{slower} of {len(works)} got slower by more than {SLOWER - 1:.0%} or were not measured")
    return 1 if slower or not works else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
