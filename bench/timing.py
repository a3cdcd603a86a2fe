"""Claim: how long a reply takes tells nothing about who is in the table that the noise does not tell already.

    python -m bench.timing [--people 2000] [--times 20] [--replies 20] [--pace 0.5]

Two tables differ in one person, who has as many rows as may be, far more than that, and texts as long as they may be.
The question that once took seconds with that person and none without, and its kin, are asked of both, in turns and in
random order, each time as a new question.  First stands the shift of the work: processor time with the person, less
that without.  Then, of a server with its usual pace, the shift of the replies.  Both are differences of medians with a
95 % interval by the bootstrap; a shift whose interval holds 0 was not seen.  Questions that are refused are refused for
both, with the same words.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import timedelta
from fractions import Fraction
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from incrowd.client import Client
from incrowd.errors import IncrowdError
from incrowd.governance.access.book import Access
from incrowd.governance.access.grant import AccessRole, Decision, Holder
from incrowd.queries.question import Terms
from incrowd.web.settings import Settings
from incrowd.web.timing import shown_after
from incrowd.workflows.ask.desk import Asking, Desk, open_desk
from incrowd.workflows.policy.policy import load_policy
from tests.queries.slow import ATTACK, KIN
from tests.web.processes import serving

ROWS, LONG, GREEDY = 6, 210, 2000
UNLIMITED = ("--rate", "1000000")
FEWEST = 10
"""From fewer times an interval would say nothing."""
SOON = 2.0
"""Replies that show later than after so many seconds are not waited for."""
Pair = tuple[list[float], list[float]]


def policy(folder: Path, people: int, *, victim: bool) -> Path:
    """Write a table, with one person more or without, and its policy."""
    folder.mkdir()
    owners = [each for each in range(people) for _ in range(ROWS)] + [people] * (GREEDY if victim else 0)
    size = len(owners)
    table = pa.table(
        {
            "patient": pa.array(owners, pa.int64()),
            "age": pa.array([place % 100 for place in range(size)], pa.int64()),
            "cost": [float(place % 1000) for place in range(size)],
            "ward": [("heart", "lung")[place % 2] for place in range(size)],
            "note": ["a" * (LONG if owner == people else place % 40) for place, owner in enumerate(owners)],
        }
    )
    pq.write_table(table, folder / "visits.parquet")
    content = {
        "incrowd": 1,
        "dataset": {"name": "visits", "unit": {"column": "patient", "max_rows": ROWS}, "population": people},
        "source": str(folder / "visits.parquet"),
        "columns": {
            "patient": {"role": "identifier", "type": "integer"},
            "age": {"type": "integer", "bounds": [0, 99]},
            "cost": {"type": "decimal", "bounds": [0, 1000]},
            "ward": {"categories": ["heart", "lung"]},
            "note": {"max_length": LONG},
        },
        "queries": {"open": True},
        "budget": {"epsilon": 1_000_000},
    }
    path = folder / "policy.yaml"
    path.write_text(json.dumps(content))
    return path


def shift(pair: Pair) -> tuple[float, float, float]:
    """Return the difference of medians in milliseconds, and the ends of its 95 % interval."""
    chance, found = random.Random(7), list[float]()
    for _ in range(1000):
        first, second = (chance.choices(side, k=len(side)) for side in pair)
        found.append(statistics.median(first) - statistics.median(second))
    found.sort()
    told = statistics.median(pair[0]) - statistics.median(pair[1]), found[25], found[975]
    return 1000 * told[0], 1000 * told[1], 1000 * told[2]


def measured(sides: Sequence[Callable[[str], float]], sql: str, times: int, chance: random.Random) -> Pair:
    """Ask both sides so often, in turns and in random order, and return what each time took."""
    pair: Pair = ([], [])
    for _ in range(times):
        for side in chance.sample((0, 1), 2):
            pair[side].append(sides[side](sql))
    return pair


def working(desk: Desk, numbers: Iterator[int]) -> Callable[[str], float]:
    """Return what measures the processor time of a question's work, charge included."""

    def work(sql: str) -> float:
        prepared = desk.prepare(Asking(sql, Terms(epsilon=Fraction(1, 10_000 + next(numbers)))))
        start = time.process_time()
        begun = prepared.begin()
        used = time.process_time() - start
        begun.finish()
        return used

    return work


def replying(client: Client, numbers: Iterator[int]) -> Callable[[str], float]:
    """Return what measures how long a reply takes."""

    def ask(sql: str) -> float:
        start = time.perf_counter()
        client.query(sql, epsilon=f"1/{10_000 + next(numbers)}")
        return time.perf_counter() - start

    return ask


def answered(desks: Sequence[Desk]) -> list[str]:
    """Return the questions that are answered; the others are refused for both, with the same words."""
    found = []
    for sql in (ATTACK, *KIN):
        words = set()
        for desk in desks:
            try:
                words.add(str(desk.prepare(Asking(sql, Terms(epsilon=Fraction(1, 1000)))).steps))
            except IncrowdError as problem:
                words.add(str(problem))
        assert len(words) == 1, "both have one bound, or one refusal"
        if words.pop().isdigit():
            found.append(sql)
    return found


def shown(desk: Desk, sql: str) -> float:
    """Return after how many seconds a server with the usual settings shows the reply to a question."""
    return shown_after(desk.prepare(Asking(sql, Terms(epsilon=Fraction(1, 1000)))).steps, Settings())


def report(kind: str, pairs: dict[str, Pair]) -> None:
    """Print the largest shifts, and how many were seen at all."""
    shifts = {sql: shift(pair) for sql, pair in pairs.items()}
    seen = {sql: told for sql, told in shifts.items() if not told[1] <= 0 <= told[2]}
    print(f"{kind}: {len(seen)} of {len(shifts)} questions with a shift whose 95 % interval leaves out 0, ", end="")
    print(f"where chance alone makes about {0.05 * len(shifts):.0f}")
    for sql, (middle, low, high) in sorted(shifts.items(), key=lambda each: -abs(each[1][0]))[:5]:
        usual = 1000 * statistics.median(pairs[sql][1])
        print(f"  {middle:+8.2f} ms ({low:+.2f} to {high:+.2f}) of {usual:.1f} ms: {sql[:70]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("people", 2000), ("times", 20), ("replies", 20)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--pace", default="0.5")
    given = parser.parse_args()
    if min(given.times, given.replies) < FEWEST:
        parser.error(f"an interval needs at least {FEWEST} times and replies of each question")
    chance, numbers = random.Random(1), count()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        files = [policy(Path(name, side), given.people, victim=side == "with") for side in ("with", "without")]
        with ExitStack() as desks:
            opened = [desks.enter_context(open_desk([load_policy(file)])) for file in files]
            asked = answered(opened)
            print(
                f"{given.people:,} people; {1 + len(KIN) - len(asked)} of {1 + len(KIN)} questions are refused for both"
            )
            soon = [sql for sql in asked if shown(opened[0], sql) <= SOON]
            sides = [working(desk, numbers) for desk in opened]
            report("work", {sql: measured(sides, sql, given.times, chance) for sql in asked})
        clients = []
        for file in files:
            access = Access.create(f"sqlite:///{file.parent}/.incrowd/ledger.sqlite")
            holder, end = Holder("ann", AccessRole.ANALYST), access.now() + timedelta(days=1)
            token = access.grant(holder, end, Decision("bench", "time")).token
            address, _ = stack.enter_context(serving(file, "--pace", given.pace, *UNLIMITED))
            clients.append(replying(Client(address, token), numbers))
        print(f"replies of {len(soon)} questions that show within {SOON:g} s")
        report("replies", {sql: measured(clients, sql, given.replies, chance) for sql in soon})


if __name__ == "__main__":
    main()
