"""Growth of the verbs that read rows: CPU seconds and memory at 1, 2, 4 and 8 million rows.

    python -m bench.growth [MILLIONS…]

The last size may take at most 1.15 times as long for each row as the first, and 600 MB.  A first size of few rows says
little: what every process takes to start is in it.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.rows import HEAD, Row, finish, show
from bench.safe_release import DATA, GOAL_MEMORY, policy, table
from bench.verbs import incrowd

LINEAR = 1.15


def verbs(source: str, written: str) -> Iterator[tuple[str, ...]]:
    """Yield the commands that read the rows of one table."""
    yield ("release", source, "--policy", written, "--out", "out")
    yield ("plan", source, "--policy", written)
    yield ("check", source, "--quasi", "age,sex,ethnicity", "--k", "5")
    yield ("profile", source)
    yield ("assess", "out", "--against", source, "--policy", written)


def main() -> None:
    """Measure every verb at every size; exit 1 where one grows faster than the rows."""
    sizes = [int(float(word) * 1e6) for word in sys.argv[1:]] or [10**6, 2 * 10**6, 4 * 10**6, 8 * 10**6]
    first, rows = dict[str, float](), list[Row]()
    print(HEAD)
    for size in sizes:
        source = table(size, "parquet")
        with tempfile.TemporaryDirectory(dir=DATA) as name:
            folder = Path(name)
            for words in verbs(str(source), str(policy(folder, "0.1"))):
                run = incrowd(folder, *words)
                base = first.setdefault(words[0], run.cpu / size) * size
                work = f"{words[0]}, growth to {size:,} rows"
                row = Row(work, run.cpu, base, "in proportion", LINEAR, 0.0, run.megabytes, GOAL_MEMORY)
                rows.append(show(row))
    finish(rows)


if __name__ == "__main__":
    main()
