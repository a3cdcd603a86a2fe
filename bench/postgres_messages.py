"""Send hostile messages to the PostgreSQL door, and look for a crash, a hang, or a question in a log.

    python -m bench.postgres_messages            100,000 messages to codec and sessions, 20,000 over connections
    python -m bench.postgres_messages NUMBER SEED

Prints how many were read, refused and replied to; ends with 1 if anything else happened.
"""

from __future__ import annotations

import asyncio
import io
import logging
import random
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from pathlib import Path

import psycopg

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from incrowd.governance.grant import AccessRole
from incrowd.web.postgres import messages as m
from incrowd.web.postgres.server import PostgresSettings
from incrowd.web.settings import Settings
from tests.ports import free_port
from tests.web.postgres.hostile import SECRET, hostile, hostile_firsts
from tests.web.postgres.test_messages import fed
from tests.web.serving import SECRET as ROW
from tests.web.serving import listening, server

PER_CONNECTION, PATIENCE = 20, 60.0
"""Messages of one connection, and seconds after which one that has not ended hangs."""


def codec(number: int, seed: int) -> str:
    """Read messages and first messages; anything but a message or a refusal is raised."""
    read = refused = 0
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
    return f"codec: {read:,} messages read, {refused:,} refused"


async def connection(port: int, token: str, seed: int) -> int:
    """Connect, rightly or not, send messages with lengths that may lie, leave; return how many bytes came back."""
    chance = random.Random(seed)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    first = struct.pack("!I", 196608) + b"user\0ann\0options\0-c incrowd.epsilon=0.1\0\0"
    if chance.random() < 0.2:
        first = next(hostile_firsts(seed))
    parts = [struct.pack("!I", len(first) + 4) + first]
    parts.append(b"p" + struct.pack("!I", len(token) + 5) + token.encode() + b"\0")
    for kind, body in islice(hostile(seed), PER_CONNECTION):
        size = len(body) + 4 if chance.random() < 0.98 else chance.randrange(2**32)
        parts.append(kind[:1] + struct.pack("!I", size) + body)
    with suppress(OSError):
        writer.write(b"".join(parts))
        if chance.random() < 0.5:
            writer.write_eof()
        await writer.drain()
    received = bytearray()
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(PATIENCE if chance.random() < 0.9 else 0.01):
            while data := await reader.read(65536):
                received += data
                if b"Z\0\0\0\5" in received and not chance.randrange(4):
                    break
    writer.close()
    if ROW.encode() in received:
        raise AssertionError("a row came back")
    return len(received)


async def connections(port: int, token: str, number: int, seed: int) -> int:
    """Make connections, many at once."""
    total, limit = 0, asyncio.Semaphore(16)

    async def one(place: int) -> int:
        async with limit:
            return await connection(port, token, seed + place)

    for done in asyncio.as_completed([one(place) for place in range(number)]):
        total += await done
    return total


def door(number: int, seed: int, folder: Path) -> str:
    """Send messages over connections; afterwards the door answers as before."""
    here = server(folder, Settings(pace=0.0, threads=2, rate=10**6))
    here.queries.go.set()
    token, where = here.token(AccessRole.ANALYST).token, PostgresSettings(free_port())
    here.client.application.state.postgres = where
    with listening(here.client.application):
        received = asyncio.run(connections(where.port, token, number // PER_CONNECTION, seed))
        with psycopg.connect(f"postgresql://ann:{token}@127.0.0.1:{where.port}/x") as connection_:
            row = connection_.execute("SELECT 1").fetchone()
        if row != (1,):
            raise AssertionError("the door answers something else now")
    return f"door: {number // PER_CONNECTION:,} connections, {received:,} bytes of replies; it answers as before"


def main(number: int = 100_000, seed: int = 1) -> int:
    """Return 1 if something went wrong."""
    log = io.StringIO()
    logging.basicConfig(stream=log, level=logging.DEBUG)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "door").mkdir()
        parts: list[Callable[[], str]] = [
            lambda: codec(number, seed),
            lambda: f"sessions: {number:,} messages, {fed(Path(folder), seed, number):,} replies",
            lambda: door(number // 5, seed, Path(folder) / "door"),
        ]
        for part in parts:
            begun = time.process_time()
            print(f"{part()}, in {time.process_time() - begun:.1f} s of processor time", flush=True)
    leaked = [name for name, text in (("question", SECRET), ("row", ROW)) if text in log.getvalue()]
    print(f"a {leaked[0]} stands in the log" if leaked else "no question and no row stands in the log")
    return 1 if leaked else 0


if __name__ == "__main__":
    raise SystemExit(main(*map(int, sys.argv[1:])))
