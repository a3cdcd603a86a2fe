"""Every criterion on ten million rows, out of core, beside a plain DuckDB GROUP BY over the same columns.

    python bench/check.py                         # ten million invented discharges
    python bench/check.py --rows 1e6
    python bench/check.py --data FILE             # such a Parquet file that is there already

Both start cold in a process of their own, with one thread each, and read the same columns of the same file.  The floor
only counts: it says how small the smallest class is, and nothing of the sensitive column.  Memory grows with the number
of different tuples, not with the rows: the first question has few of them, the second nearly one for each row.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

GENERATOR = Path(__file__).resolve().parents[1] / "examples" / "hospital" / "population.py"
QUESTIONS = {
    "few tuples": ("age", "sex", "ethnicity"),
    "a tuple for nearly every row": ("age", "sex", "ethnicity", "zip", "discharged"),
}
SENSITIVE = "diagnosis"
WANTED = (
    *("--k", "5", "--l", "3", "--entropy-l", "2", "--recursive", "3,2", "--t", "0.3", "--beta", "2"),
    *("--enhanced-beta", "2", "--disclosure", "3", "--average-risk", "0.05", "--unique", "0.01,100000000"),
)
WATCH = """\
import json, resource, subprocess, sys, time
start = time.perf_counter()
done = subprocess.run(sys.argv[1:], capture_output=True, text=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
if done.returncode > 1:
    sys.exit(done.stderr)
print(json.dumps([time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, done.stdout]))
"""
FLOOR = """\
import duckdb, sys
names = ", ".join(f'"{name}"' for name in sys.argv[2:])
with duckdb.connect(config={"threads": 1}) as connection:
    connection.execute("SET enable_progress_bar = false")
    counted = f"SELECT count(*), min(n) FROM (SELECT count(*) AS n FROM '{sys.argv[1]}' GROUP BY {names})"
    print(connection.sql(counted).fetchall()[0][0])
"""


@dataclass(frozen=True)
class Run:
    """What one process took, and what it said."""

    wall: float
    cpu: float
    peak: float
    said: str

    @classmethod
    def of(cls, *command: str) -> Run:
        """Run a command in a process of its own."""
        done = subprocess.run([sys.executable, "-c", WATCH, *command], capture_output=True, text=True, check=True)
        return cls(*json.loads(done.stdout))

    def told(self, what: str) -> str:
        """Return a line of the table."""
        return f"{what:<44}{self.wall:>8.1f} s wall {self.cpu:>8.1f} s CPU {self.peak:>8.0f} MB peak"


def main() -> None:
    """Ask every question of both."""
    told = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    told.add_argument("--rows", type=float, default=1e7)
    told.add_argument("--data", type=Path)
    given = told.parse_args()
    with tempfile.TemporaryDirectory(prefix="incrowd-check-") as folder:
        data = given.data
        if data is None:
            data = Path(folder) / "discharges.parquet"
            subprocess.run([sys.executable, str(GENERATOR), str(int(given.rows)), str(data)], check=True)
        for question, quasi in QUESTIONS.items():
            ask(question, quasi, data)


def ask(question: str, quasi: tuple[str, ...], data: Path) -> None:
    """Ask one question of both, and print what each took."""
    floor = Run.of(sys.executable, "-c", FLOOR, str(data), *quasi, SENSITIVE)
    print(f"{question}: {int(floor.said):,} tuples of {', '.join((*quasi, SENSITIVE))}")
    print(floor.told("  DuckDB GROUP BY, one thread"))
    command = (sys.executable, "-m", "incrowd", "check", str(data), "--quasi", ",".join(quasi))
    for what, options in (
        ("  incrowd check, every criterion", WANTED),
        (
            "  the same with k-map and presence",
            (*WANTED, "--population", str(data), "--k-map", "5", "--presence", "0,1"),
        ),
    ):
        run = Run.of(*command, "--sensitive", SENSITIVE, *options, "--json")
        found = json.loads(run.said)
        print(f"{run.told(what)}, {run.cpu / floor.cpu:.1f} times the CPU; {found['rows']:,} rows")
        print("    " + ", ".join(f"{'✓' if each['passed'] else '✗'} {each['criterion']}" for each in found["findings"]))


if __name__ == "__main__":
    main()
