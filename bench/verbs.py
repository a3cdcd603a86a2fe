"""Verbs that read a million rows: profile, check with guessed keys, every attack; beside DuckDB's SUMMARIZE.

    python -m bench.verbs [ROWS]

Every figure is a whole process, the best of some.  Profiles are of 9 columns, and of 20 with numbers, days and keys
more; the goal is for 20.  The table that is attacked has shorter zip codes and rounded charges; the control group has a
tenth of the rows.
"""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path

from bench.rows import HEAD, Row, finish, show
from bench.safe_release import DATA, Run, best, measured, table

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


MORE = (
    """\
import duckdb, sys
columns = """
    + repr(
        "*, 10000000 + hash(patient) % 1000000000 AS visit, round(150 + hash(patient, 1) % 500 / 10, 1) AS height, "
        "round(40 + hash(patient, 2) % 900 / 10, 1) AS weight, "
        "round(60 + hash(patient, 3) % 20000 / 100, 2) AS glucose, "
        "discharged - CAST(hash(patient, 4) % 20 AS INTEGER) AS admitted, "
        "DATE '1930-01-01' + CAST(hash(patient, 5) % 34000 AS INTEGER) AS born, "
        "'Town' || CAST(sqrt(hash(patient, 6) % 4000000) AS INTEGER) AS city, "
        "hash(patient, 7) % 2 = 0 AS smoker, 'D-' || hash(patient, 8) % 900 AS doctor, "
        "hash(patient, 9) % 101 AS score, 'R' || hash(patient, 10) AS reference"
    )
    + """
duckdb.sql(f"COPY (SELECT {columns} FROM '{sys.argv[1]}') TO '{sys.argv[2]}'")
"""
)


def twenty(source: str, rows: int) -> str:
    """Return the same table with eleven more columns, made once."""
    path = DATA / f"discharges-{rows}-20.parquet"
    if not path.exists():
        measured([sys.executable, "-c", MORE, source, str(path)], DATA)
    return str(path)


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
        for columns, file, goal in ((9, source, None), (20, twenty(source, size), 1.5)):
            floor = best(3, partial(measured, [sys.executable, "-c", SUMMARIZE, file], folder))
            run = best(2, partial(incrowd, folder, "profile", file, "--json"))
            work = f"profile, {size:,} × {columns}"
            rows.append(show(Row(work, run.cpu, floor.cpu, "SUMMARIZE", goal, megabytes=run.megabytes)))
        for columns, file, seconds in ((9, source, 2.5), (20, twenty(source, size), None)):
            run = best(2, partial(incrowd, folder, "check", file, "--json"))
            work = f"check, guessed keys, {size:,} × {columns}"
            most = None if seconds is None else seconds * scale
            rows.append(show(Row(work, run.cpu, goal=most, megabytes=run.megabytes)))
        measured([sys.executable, "-c", PUBLISH, source], folder)
        known = ("--known", "sex,ethnicity,zip", "--secret", "diagnosis")
        run = incrowd(folder, "attack", "published.parquet", "--against", source, "--control", control, *known)
        work = f"attack, all that apply, {size:,} rows"
        rows.append(show(Row(work, run.cpu, goal=12 * scale, megabytes=run.megabytes, most_megabytes=600)))
    finish(rows)


if __name__ == "__main__":
    main()
