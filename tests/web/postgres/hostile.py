"""Hostile messages: valid ones with bytes changed, lengths that lie, texts that are not SQL, in any order."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator

SECRET = "geheime-frage-7"
"""Stands in every query, and may stand in no log."""
_SQL = (
    f"SELECT COUNT(*) FROM births WHERE sex = '{SECRET}'", f"SELECT '{SECRET}'", f"SELECT * FROM {SECRET!r}",
    "SELECT 1", "BEGIN", "COMMIT", "ROLLBACK TO x", "SET incrowd.epsilon = 0.1", "SET x = y",
    "SHOW incrowd.remaining", "SHOW nix",
    "SELECT * FROM births LIMIT 0", "SELECT $1 FROM births", "SELECT $0, $201, $99999999999999999999", "EXPLAIN", ";",
    "EXPLAIN SELECT 1 FROM births", "select relname from pg_class where oid = $1", "'", "$$", "DROP TABLE births", "/*",
    "SELECT 1;SELECT 2; SELECT 'budget' FROM births", "((((((" * 40, "DISCARD ALL",
    f"SELECT 1 FROM pg_class; VACUUM {SECRET}", f"SELECT pg_sleep($1); CALL {SECRET}()", "COPY births TO STDOUT",
    "\ud7ff\U0010ffff",
    "SELECT * FROM read_csv('/etc/passwd')", "SELECT * FROM pg_stat_activity", "VALUES (1)",
    "SELECT 'crash' FROM births",
)  # fmt: skip
_NAMES = (b"", b"a", b"b", b"\xff", b"x" * 300)


def _text(chance: random.Random) -> bytes:
    return chance.choice(_SQL).encode("utf-8", "replace") + b"\0"


def _name(chance: random.Random) -> bytes:
    return chance.choice(_NAMES[: 2 if chance.random() < 0.9 else 5]) + b"\0"


def _valid(chance: random.Random) -> tuple[bytes, bytes]:
    kind = chance.choice(b"QQPPPBBBDDEEECSSSHXpFdcf\x00\xff").to_bytes()
    types = [chance.choice((0, 16, 20, 23, 25, 701, 1082, 1114, 1700, 4242)) for _ in range(chance.randrange(3))]
    values = [chance.choice((None, b"", b"7", b"\0\0\0\7", b"x" * 12, bytes(8))) for _ in range(chance.randrange(3))]
    body = {
        b"Q": lambda: _text(chance),
        b"P": lambda: _name(chance) + _text(chance) + struct.pack(f"!h{len(types)}I", len(types), *types),
        b"B": lambda: _name(chance) + _name(chance) + struct.pack("!hhh", 1, chance.choice((0, 1, 2)), len(values))
        + b"".join(b"\xff" * 4 if v is None else struct.pack("!i", len(v)) + v for v in values) + struct.pack("!h", 0),
        b"D": lambda: chance.choice((b"S", b"P", b"Z")) + _name(chance),
        b"E": lambda: _name(chance) + struct.pack("!i", chance.choice((0, 1, -1, 2**31 - 1))),
        b"C": lambda: chance.choice((b"S", b"P")) + _name(chance),
        b"p": lambda: _text(chance),
    }.get(kind, lambda: b"")()  # fmt: skip
    return kind, body


def hostile(seed: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield messages without end, about half of them broken."""
    chance = random.Random(seed)
    while True:
        kind, body = _valid(chance)
        for _ in range(chance.choice((0, 0, 0, 1, 1, 3))):
            match chance.randrange(4):
                case 0 if body:
                    at = chance.randrange(len(body))
                    body = body[:at] + chance.randbytes(1) + body[at + 1 :]
                case 1:
                    body = body[: chance.randrange(len(body) + 1)]
                case 2:
                    body += chance.randbytes(chance.randrange(9))
                case _:
                    kind = chance.randbytes(1)
        yield kind, body


def hostile_firsts(seed: int) -> Iterator[bytes]:
    """Yield first messages without end, without their lengths."""
    chance = random.Random(seed)
    while True:
        code = chance.choice((196608, 196610, 131072, 80877102, 80877103, 80877104, chance.randrange(2**32)))
        pairs = [_name(chance) + _text(chance) for _ in range(chance.randrange(3))]
        body = struct.pack("!I", code) + chance.choice((b"user\0ann\0", b"", *pairs)) + b"".join(pairs) + b"\0"
        cut = chance.randrange(len(body) + 1) if chance.random() < 0.3 else len(body)
        yield body[:cut] + chance.choice((b"", b"", chance.randbytes(5)))
