"""Claim: how long a reply takes tells nothing about who is in the table that the noise does not tell already.

    python -m bench.timing [--people 2000] [--seconds 300] [--pace 0.5]

Two tables differ in one person, who has as many rows as may be, far more than that, and texts as long as they may be.
The question that once took seconds with that person and none without, and its kin, are asked of both, in turns and in
random order, each time as a new question.  First stands the shift of the work: processor time with the person, less
that without.  Then, of a server with its usual pace, the shift of the replies.  Both are differences of medians with a
95 % interval by the bootstrap; a shift whose interval holds 0 was not seen.  Questions that are refused are refused for
both, with the same words.  Two fifths of the seconds go to the work, the rest to the replies: of as many questions as
there is time for at least ten of each, those first whose work shifted most.
"""

from __future__ import annotations

import argparse
import gc
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
from incrowd.governance.access_list import AccessList
from incrowd.governance.grant import AccessDecision, AccessRole, User
from incrowd.queries.query import QueryTerms
from incrowd.web.answering import shown_after
from incrowd.web.settings import Settings
from incrowd.workflows.policy.policy import load_policy
from incrowd.workflows.query.request import QueryRequest
from incrowd.workflows.query.service import QueryService, open_queries
from tests.queries.slow import ATTACK, KIN
from tests.web.processes import serving

ROWS, LONG, GREEDY = 6, 210, 2000
UNLIMITED = ("--requests-per-minute", "1000000")
FEWEST = 10
"""From fewer times of each question an interval would say nothing."""
_WORK, _OVERHEAD = 0.4, 0.05
"""Which share of the time goes to the work, and how many seconds a reply takes beyond the time after which it shows."""
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


def measured(
    sides: Sequence[Callable[[str], float]], asked: Sequence[str], end: float, chance: random.Random
) -> dict[str, Pair]:
    """Ask both sides everything, in turns and in random order, often enough and until the time is over."""
    pairs: dict[str, Pair] = {sql: ([], []) for sql in asked}
    for times in count():
        if times >= FEWEST and time.monotonic() >= end:
            return pairs
        for sql in chance.sample(asked, len(asked)):
            for side in chance.sample((0, 1), 2):
                pairs[sql][side].append(sides[side](sql))
    raise AssertionError


def working(service: QueryService, numbers: Iterator[int]) -> Callable[[str], float]:
    """Return what measures the processor time of a question's work, charge included."""

    def work(sql: str) -> float:
        prepared = service.prepare(QueryRequest(sql, QueryTerms(epsilon=Fraction(1, 10_000 + next(numbers)))))
        gc.disable()  # whoever's garbage it is, it would be counted here
        start = time.process_time()
        begun = prepared.begin()
        used = time.process_time() - start
        gc.enable()
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


def answered(services: Sequence[QueryService]) -> list[str]:
    """Return the questions that are answered; the others are refused for both, with the same words."""
    found = []
    for sql in (ATTACK, *KIN):
        words = set()
        for service in services:
            try:
                words.add(str(service.prepare(QueryRequest(sql, QueryTerms(epsilon=Fraction(1, 1000)))).steps))
            except IncrowdError as problem:
                words.add(str(problem))
        assert len(words) == 1, "both have one bound, or one refusal"
        if words.pop().isdigit():
            found.append(sql)
    return found


def affordable(service: QueryService, asked: Sequence[str], seconds: float, settings: Settings) -> list[str]:
    """Return as many questions as both sides can be asked often enough in so many seconds, the first ones first."""
    found, left = list[str](), seconds
    for sql in asked:
        steps = service.prepare(QueryRequest(sql, QueryTerms(epsilon=Fraction(1, 1000)))).steps
        left -= 2 * FEWEST * (shown_after(steps, settings) + _OVERHEAD)
        if left < 0 and found:
            return found
        found.append(sql)
    return found


def report(kind: str, pairs: dict[str, Pair]) -> None:
    """Print the largest shifts, and how many were seen at all."""
    shifts = {sql: shift(pair) for sql, pair in pairs.items()}
    seen = {sql: told for sql, told in shifts.items() if not told[1] <= 0 <= told[2]}
    times = min(len(side) for pair in pairs.values() for side in pair)
    print(f"{kind}, {times} times each: {len(seen)} of {len(shifts)} questions", end=" ")
    print("with a shift whose 95 % interval leaves out 0, ", end="")
    print(f"where chance alone makes about {0.05 * len(shifts):.0f}")
    for sql, (middle, low, high) in sorted(shifts.items(), key=lambda each: -abs(each[1][0]))[:5]:
        usual = 1000 * statistics.median(pairs[sql][1])
        print(f"  {middle:+8.2f} ms ({low:+.2f} to {high:+.2f}) of {usual:.1f} ms: {sql[:70]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=2000)
    for name, default in (("seconds", 300.0), ("pace", 0.5)):
        parser.add_argument(f"--{name}", type=float, default=default)
    given = parser.parse_args()
    chance, numbers, start = random.Random(1), count(), time.monotonic()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        files = [policy(Path(name, side), given.people, victim=side == "with") for side in ("with", "without")]
        with ExitStack() as services:
            opened = [services.enter_context(open_queries([load_policy(file)])) for file in files]
            asked, all_ = answered(opened), 1 + len(KIN)
            print(f"{given.people:,} people; {all_ - len(asked)} of {all_} questions are refused for both")
            sides = [working(service, numbers) for service in opened]
            pairs = measured(sides, asked, start + _WORK * given.seconds, chance)
            report("work", pairs)
            asked.sort(key=lambda sql: -abs(shift(pairs[sql])[0]))
            left = start + given.seconds - time.monotonic()
            asked = affordable(opened[0], asked, left, Settings(pace=given.pace))
        clients = []
        for file in files:
            access = AccessList.create(f"sqlite:///{file.parent}/.incrowd/ledger.sqlite")
            holder, end = User("ann", AccessRole.ANALYST), access.now() + timedelta(days=1)
            token = access.grant(holder, end, AccessDecision("bench", "time")).token
            address, _ = stack.enter_context(serving(file, "--reply-interval", str(given.pace), *UNLIMITED))
            clients.append(replying(Client(address, token), numbers))
        report("replies", measured(clients, asked, start + given.seconds, chance))


if __name__ == "__main__":
    main()
