"""Golden parts: the largest part of its guarantee that each example was ever seen to lose.

A part above 1 is a broken guarantee.  A part that falls says that a mechanism is no longer met, or that noise grew for
nothing; if it was meant, write the file again with `python -m tests.replay --write`.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.replay.replaying import TOLERANCE

FILE = Path(__file__).parent / "golden.json"
Parts = dict[str, float]
"""By the kind of neighbor: the largest part of a guarantee that transcripts lost."""


def load() -> dict[str, Parts]:
    """Return the parts of all examples, by their names."""
    golden: dict[str, Parts] = json.loads(FILE.read_text(encoding="utf-8"))
    return golden


def store(parts: dict[str, Parts]) -> None:
    """Write the parts of all examples; they are cut, not rounded, so that the same run passes."""
    cut = {
        name: {kind: min(1.0, int(part * 10**9) / 10**9) for kind, part in own.items()} for name, own in parts.items()
    }
    FILE.write_text(json.dumps(cut, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")


def check(name: str, parts: Parts) -> None:
    """Refuse a part above 1, and one below the golden one."""
    golden = load()
    assert name in golden, f"{name} has no golden parts: run `python -m tests.replay --write` and read what it prints."
    assert parts.keys() == golden[name].keys()
    for kind, part in parts.items():
        assert part <= 1 + TOLERANCE, f"{name}, {kind}: {part} times the guarantee"
        assert part >= golden[name][kind] - TOLERANCE, (
            f"{name}, {kind}: the largest part of the guarantee fell from {golden[name][kind]} to {part}. "
            "A mechanism is not met any more, or has more noise than it needs."
        )
