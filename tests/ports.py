"""Ports for servers that the tests start."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from itertools import count

_FIRST, _PORTS, _APART = 20_000, 10_000, 37
_NUMBERS = count()


def free_port() -> int:
    """Return a port of this machine that nobody uses.

    It is not one that the system hands out by itself, so that nobody gets it before the server is there, and
    processes that look at the same time begin at different places.
    """
    for number in _NUMBERS:
        port = _FIRST + (_APART * os.getpid() + number) % _PORTS
        with suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError
