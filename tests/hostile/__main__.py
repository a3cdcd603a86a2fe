"""What each hostile file costs to read: `python -m tests.hostile [part of a name]`; `--quick` as the test runs it."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from incrowd.engines.worker import WorkerLimits
from tests.hostile.running import CORPUS, as_installed, run_corpus, within

QUICK = WorkerLimits(processor=1, clock=240, memory=500_000_000)
"""Lower limits, so that a test of all files takes a minute."""


def main(words: list[str]) -> int:
    """Print a line for each file, and return 1 if one of them ended badly."""
    quick = "--quick" in words
    parts = [word for word in words if word != "--quick"]
    names = [name for name in CORPUS if not parts or any(part in name for part in parts)]
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="hostile-") as place:
        if quick:
            import incrowd.cli.check
            import incrowd.cli.importing
            import incrowd.cli.profile
            import incrowd.cli.report
            import incrowd.cli.verify  # noqa: F401 (once, and not for each file)
        for ending in run_corpus(Path(place), names, within(QUICK) if quick else as_installed):
            wrong += ending.problem is not None
            said = ending.problem or ending.text.strip().splitlines()[0][:70]
            print(
                f"{ending.name:46} {ending.verb:8} {ending.bytes / 1e6:7.2f} MB  exit {ending.code}  "
                f"{ending.seconds:6.1f} s  {ending.processor:6.1f} s cpu  {ending.memory / 1e6:6.0f} MB  "
                f"{'WRONG ' if ending.problem else ''}{said}",
                flush=True,
            )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
