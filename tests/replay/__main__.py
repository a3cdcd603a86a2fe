"""Print the largest part of its guarantee that each example lost; `--write` makes it the golden one."""

from __future__ import annotations

import sys
import time

from tests.replay import golden, tables


def measured() -> dict[str, golden.Parts]:
    """Replay every example."""
    found: dict[str, golden.Parts] = {}
    for method, name in tables.REPLAYED:
        if len(sys.argv) > 1 and not set(sys.argv[1:]) & {method, "--write"}:
            continue
        start = time.process_time()
        found[f"{method}, {name}"] = tables.parts(method, name)
        _say(f"{method}, {name}", found, time.process_time() - start)
    return found


def _say(name: str, found: dict[str, golden.Parts], seconds: float) -> None:
    for kind, part in found[name].items():
        print(f"{name:52} {kind:18} {part:.4f}  {seconds:5.1f} s", flush=True)


if __name__ == "__main__":
    everything = measured()
    if "--write" in sys.argv:
        golden.store(everything)
