"""Processes that charge one ledger, for the tests that put it under fire.

python -m tests.chargers charge ADDRESS EPSILON TIMES     one line of JSON: numbers of accepted entries, refusals
python -m tests.chargers die ADDRESS KILLS                children charge and are killed; prints what they were told
python -m tests.chargers poor ADDRESS                     as a user who may not write; prints the error
python -m tests.chargers cramped ADDRESS                  with no room for larger files; prints the error
"""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from incrowd.accounting.ledger.ledger import Ledger
from incrowd.errors import BudgetExceeded, LedgerUnavailable
from incrowd.store.sqlite import sqlite_at
from tests.ledgers import pure, reopen

NOBODY = 65534


def charge(address: str, epsilon: str, times: str) -> None:
    ledger, accepted, refused = reopen(address), [], 0
    for _ in range(int(times)):
        try:
            accepted.append(ledger.charge(pure(epsilon), "births", release="r").sequence)
        except BudgetExceeded:
            refused += 1
    print(json.dumps({"accepted": accepted, "refused": refused}))


def die(address: str, kills: str) -> None:
    """Fork children that charge as fast as they can and kill each at a random moment within a few charges.

    After the asked number of kills it goes on, giving children more time on a busy machine, until some were told.
    """
    ledger, chance, told = reopen(address), random.Random(os.getpid()), list[list[str]]()
    ledger.charge(pure("1e-20"), "births", release="r")  # also loads what is loaded late
    began = time.monotonic()
    ledger.charge(pure("1e-20"), "births", release="r")
    while_charging = time.monotonic() - began
    for number in range(10 * int(kills)):
        if number >= int(kills) and len(told) > int(kills) // 3:
            break
        patience = 6 * while_charging * (1 + number // int(kills))
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            while True:
                entry = ledger.charge(pure("1e-20"), "births", release="r")
                os.write(write, f"{entry.sequence} {entry.anchor.hash}\n".encode())
        os.close(write)
        time.sleep(chance.uniform(0, patience))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with os.fdopen(read) as lines:
            told += [line.split() for line in lines if line.endswith("\n")]
    print(json.dumps(told))


def make(address: str, kills: str) -> None:
    """Fork children that create a ledger and kill each at a random moment; whatever is there then must be whole.

    After the asked number of kills it goes on, with more time on a busy machine, until both outcomes were seen.
    """
    began, chance = time.monotonic(), random.Random(os.getpid())
    Ledger.create(address)
    while_making, left = time.monotonic() - began, {"nothing": 0, "a ledger": 0}
    for number in range(10 * int(kills)):
        if number >= int(kills) and all(left.values()):
            break
        patience = 1.5 * while_making * (1 + number // int(kills))
        place = address.replace("ledger.sqlite", f"{number}.sqlite")
        child = os.fork()
        if child == 0:
            Ledger.create(place)
            os._exit(0)
        time.sleep(chance.uniform(0, patience))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        there = sqlite_at(place, "ledger").path.exists()
        if there:
            assert Ledger.open(place).check().ok
        left["a ledger" if there else "nothing"] += 1
    print(json.dumps(left))


def poor(address: str) -> None:
    ledger = reopen(address)
    ledger.show()
    with suppress(LedgerUnavailable):
        reopen(address.replace("ledger.sqlite", "missing.sqlite"))  # loads what errors need
    if os.geteuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    _try(address)


def cramped(address: str) -> None:
    size = sqlite_at(address, "ledger").path.stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    _try(address, times=100)


def _try(address: str, times: int = 1) -> None:
    ledger = reopen(address)
    assert ledger.show().datasets
    try:
        for _ in range(times):
            ledger.charge(pure("1e-20"), "births", release="r")
    except LedgerUnavailable as error:
        print(json.dumps({"error": type(error).__name__, "text": str(error), "entries": ledger.show().head.sequence}))


def root() -> Path:
    """Return the folder from which this module can be run."""
    return Path(__file__).parent.parent


VERBS: dict[str, Callable[..., None]] = {"charge": charge, "die": die, "make": make, "poor": poor, "cramped": cramped}

if __name__ == "__main__":
    VERBS[sys.argv[1]](*sys.argv[2:])
