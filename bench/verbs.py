"""Verbs that read a million rows: profile, check with guessed keys, every attack; beside DuckDB's SUMMARIZE.

    python -m bench.verbs [ROWS]

Every figure is a whole process.  The table that is attacked has shorter
zip codes and rounded charges; the control group has a tenth of the rows.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from bench.rows import HEAD, Row, finish, show
from bench.safe_release import DATA, Run, measured, table

SUMMARIZE = """\
import duckdb, sys
with duckdb.connect(config={"threads": 1}) as connection:
    connection.execute("SET enable_progress_bar = false")
    connection.sql(f"SUMMARIZE FROM '{sys.argv[1]}'").fetchall()
"""

PUBLISH = """\
import duckdb, sys
columns = "sex, ethnicity, zip[:3] || '*' AS zip, diagnosis, charge // 10000 * 10000 AS charge"
duckdb.sql(f"COPY (SELECT {columns} FROM '{sys.argv[1]}' ORDER BY ALL) TO 'published.parquet'")
"""


def incrowd(folder: Path, *words: str) -> Run:
    """Run one command."""
    return measured([sys.executable, "-m", "incrowd", *words], folder, expected=(0, 1))


def main() -> None:
    """Measure each verb once, and the floor thrice; exit 1 if a goal is missed."""
    size = int(float(sys.argv[1])) if len(sys.argv) > 1 else 1_000_000
    source, control = str(table(size, "parquet")), str(table(size // 10, "parquet"))
    scale = size / 1e6
    rows = list[Row]()
    print(HEAD)
    with tempfile.TemporaryDirectory(dir=DATA) as name:
        folder = Path(name)
        floor = min(
            (measured([sys.executable, "-c", SUMMARIZE, source], folder) for _ in range(3)), key=lambda r: r.cpu
        )
        run = incrowd(folder, "profile", source, "--json")
        rows.append(show(Row(f"profile, {size:,} rows", run.cpu, floor.cpu, "SUMMARIZE", 1.5, megabytes=run.megabytes)))
        run = incrowd(folder, "check", source, "--json")
        rows.append(
            show(Row(f"check, guessed keys, {size:,} rows", run.cpu, goal=2.5 * scale, megabytes=run.megabytes))
        )
        measured([sys.executable, "-c", PUBLISH, source], folder)
        known = ("--known", "sex,ethnicity,zip", "--secret", "diagnosis")
        run = incrowd(folder, "attack", "published.parquet", "--against", source, "--control", control, *known)
        work = f"attack, all that apply, {size:,} rows"
        rows.append(show(Row(work, run.cpu, goal=12 * scale, megabytes=run.megabytes, most_megabytes=600)))
    finish(rows)


if __name__ == "__main__":
    main()
