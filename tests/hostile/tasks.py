"""Work for a worker that ends badly, or well."""

from __future__ import annotations

import os
import signal

from incrowd.engines.worker import Tell
from incrowd.errors import InvalidParameter


def fill_memory() -> int:
    return len(b"x" * 3_000_000_000)


def spin() -> None:
    while True:
        pass


def crash() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def refuse() -> None:
    raise InvalidParameter("this is refused.")


def fault() -> None:
    raise ZeroDivisionError


def count_to(number: int, tell: Tell) -> int:
    tell(number, None)
    return number
