"""Draws that are the same in every run: whether the suite passes hangs on the code and not on luck.

Within a test everything that asks the operating system for random bytes gets them from the test's name: the keys of
all coins, hence every draw of noise and every sample, and the seeds of generators that are given none.  Programs that
a test starts draw their own.  `INCROWD_TEST_SEED` names another world to run in, and `fresh` leaves chance alone:

    INCROWD_TEST_SEED=7 ./test
    INCROWD_TEST_SEED=fresh ./test
"""

from __future__ import annotations

import hashlib
import itertools
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

SEED = os.environ.get("INCROWD_TEST_SEED", "0")
FRESH = SEED == "fresh"


@contextmanager
def settled(name: str) -> Iterator[None]:
    """Let all chance within this process hang on a name; a forked child has chance of its own."""
    if FRESH:
        yield
        return
    turns, home = itertools.count(), os.getpid()

    def urandom(size: int, /) -> bytes:
        own = "" if os.getpid() == home else str(os.getpid())
        return hashlib.shake_256(repr((SEED, name, own, next(turns))).encode()).digest(size)

    random.seed(f"{SEED} {name}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "urandom", urandom)
        patch.setattr(random, "_urandom", urandom)
        yield
