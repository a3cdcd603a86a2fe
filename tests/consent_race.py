"""Two processes write and read consents at once: no admission may be stale.

    python -m tests.consent_race [--seconds 600]

One process records withdrawals and consents of a few people, one after the other, and notes each after it is on disk.
The other reads who is admitted, again and again: whoever was noted as withdrawn before a reading began must not be
admitted by it, and whoever was noted as consenting before and after must be.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

from incrowd.governance.consent.event import Decided
from incrowd.workflows.consent.snapshot import admit
from incrowd.workflows.policy.policy import load_policy
from tests.consents import GATED, Consented, consented, subjects_of

PEOPLE = [f"p{number}" for number in range(4)]
_SPAWN = multiprocessing.get_context("spawn")


def write(policy: str, seconds: float, least: int, pipe: Connection) -> None:
    """Let people leave and join in turn, so long and so often at least, and send each decision once it is recorded."""
    made = load_policy(Path(policy))
    from incrowd.workflows.consent.place import make_registry

    book = Consented(made, make_registry(made))
    end, turn = time.monotonic() + seconds, 0
    while turn < least or time.monotonic() < end:
        person, leaves = PEOPLE[turn % len(PEOPLE)], (turn // len(PEOPLE)) % 2 == 0
        pipe.send((person, None))  # from now on the answer may be either
        book.decide(Decided.WITHDRAW if leaves else Decided.GIVE, [person], at=book.registry.decision_time())
        pipe.send((person, not leaves))
        turn += 1
    pipe.send(None)


def race(folder: Path, seconds: float, least: int = 0) -> tuple[int, int, int]:
    """Return how many decisions were recorded, how many readings were made, and how many of them were stale."""
    made = consented(GATED, folder, PEOPLE)
    pseudonyms = {name: who.pseudonym for name, who in zip(PEOPLE, subjects_of(made.policy, PEOPLE), strict=True)}
    receiving, sending = _SPAWN.Pipe(duplex=False)
    writer = _SPAWN.Process(target=write, args=(str(made.policy.folder / "policy.yaml"), seconds, least, sending))
    writer.start()
    sending.close()
    state: dict[str, bool | None] = dict.fromkeys(PEOPLE, True)
    decisions = readings = stale = 0
    running = True
    while running:
        before = dict(state)
        admission = admit(made.policy)
        assert admission is not None
        unsettled = set[str]()
        while receiving.poll(0):
            message = receiving.recv()
            running = message is not None
            if message is None:
                break
            name, state[message[0]] = message
            unsettled.add(name)
            decisions += state[name] is not None
        readings += 1
        for name, consents in before.items():
            if consents is not None and name not in unsettled:
                stale += (pseudonyms[name] in admission.subjects) != consents
    writer.join()
    assert writer.exitcode == 0
    return decisions, readings, stale


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=600)
    with tempfile.TemporaryDirectory() as folder:
        decisions, readings, stale = race(Path(folder), options.parse_args().seconds)
    print(f"{decisions:,} decisions, {readings:,} readings, {stale} stale")
    raise SystemExit(int(stale > 0))


if __name__ == "__main__":
    main()
