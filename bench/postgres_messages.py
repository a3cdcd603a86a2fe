"""Send hostile messages to the PostgreSQL door, and look for a crash, a hang, or a question in a log.

    python -m bench.postgres_messages            100,000 messages to the codec, 10,000 of them to sessions
    python -m bench.postgres_messages NUMBER SEED

Prints how many were read and refused; ends with 1 if anything else happened.
"""

from __future__ import annotations

import io
import logging
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from incrowd.web.postgres import messages as m
from tests.web.postgres.hostile import SECRET, hostile, hostile_firsts
from tests.web.postgres.test_messages import fed


def main(number: int = 100_000, seed: int = 1) -> int:
    """Return 1 if something went wrong."""
    log = io.StringIO()
    logging.basicConfig(stream=log, level=logging.DEBUG)
    begun, read, refused = time.monotonic(), 0, 0
    for kind, body in islice(hostile(seed), number):
        try:
            m.read_message(kind, body)
            read += 1
        except m.ProtocolViolation:
            refused += 1
    for body in islice(hostile_firsts(seed), number // 10):
        try:
            m.read_first(body)
            read += 1
        except m.ProtocolViolation:
            refused += 1
    print(f"codec: {read:,} messages read, {refused:,} refused, in {time.monotonic() - begun:.1f} s")
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        replied = fed(Path(folder), seed, number // 10)
    print(f"sessions: {number // 10:,} messages, {replied:,} replies, in {time.monotonic() - begun:.1f} s")
    leaked = SECRET in log.getvalue()
    print("a question stands in the log" if leaked else "no question stands in the log")
    return 1 if leaked else 0


if __name__ == "__main__":
    raise SystemExit(main(*map(int, sys.argv[1:])))
