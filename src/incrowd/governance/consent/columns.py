"""Columns: many events as arrays, as the registry stores batches of them and as they are folded.

Pseudonyms stand as hexadecimal text, so that a database finds the batches that name a person.  Times are whole
microseconds since 1970, and texts are numbered, both in base64.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.errors import LedgerCorrupted
from incrowd.governance.consent.event import RARE, ConsentEvent, written_moment

Integers = NDArray[np.int64]
Words = NDArray[np.uint64]
NONE = np.iinfo(np.int64).min
"""A time that is not told."""
LAST = 253_402_300_799_999_999
"""The last microsecond of the year 9999."""
_ALIKE, _MORE = 8, 9
_UNTOLD = "0" * 32
_TEXTS = ("decided", "purpose", "basis", "notice", "guardian")
_TIMES = ("at", "valid_from", "valid_to", "of_age", "corrects")
_START = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, eq=False)
class EventColumns:
    """Events of one batch: pseudonyms as two words each, numbered texts, and times.

    >>> day = "2026-01-01T00:00:00.000000Z"
    >>> event = ConsentEvent.from_row(["a" * 32, "give", "research", day, day, None, "", ""])
    >>> columns = EventColumns.of_rows([event.to_row()])
    >>> list(EventColumns.read(columns.to_json()).events()) == [event]
    True
    """

    subjects: Words
    alikes: Words
    names: Mapping[str, tuple[str, ...]]
    codes: Mapping[str, Integers]
    times: Mapping[str, Integers]

    def __len__(self) -> int:
        return len(self.subjects)

    @classmethod
    def of_rows(cls, rows: Sequence[Sequence[Any]]) -> EventColumns:
        """Return events that are stored row by row."""
        more = [row[_MORE] if len(row) > _MORE else {} for row in rows]
        alikes = [(row[_ALIKE] or _UNTOLD) if len(row) > _ALIKE else _UNTOLD for row in rows]
        subjects, decided, purposes, at, starts, stops, basis, notice = (
            tuple(zip(*(row[:_ALIKE] for row in rows), strict=True)) or ((),) * _ALIKE
        )
        rare = {name: [fields.get(name) for fields in more] for name in RARE}
        texts = zip(_TEXTS, (decided, purposes, basis, notice, [text or "" for text in rare["guardian"]]), strict=True)
        numbered = {name: _numbered(column) for name, column in texts}
        times = zip(_TIMES, (at, starts, stops, rare["of_age"], rare["corrects"]), strict=True)
        return cls(
            _words("".join(subjects)),
            _words("".join(alikes)),
            {name: names for name, (names, _) in numbered.items()},
            {name: codes for name, (_, codes) in numbered.items()},
            {name: moments(column) for name, column in times},
        )

    @classmethod
    def read(cls, plain: Mapping[str, Any]) -> EventColumns:
        """Read what `to_json` wrote."""
        try:
            subjects = _words(plain["subject"])
            size = len(subjects)
            alikes = _words(plain["alike"]) if plain["alike"] else np.zeros((size, 2), np.uint64)
            names = {name: tuple(plain[name][0]) for name in _TEXTS}
            codes = {name: _integers(plain[name][1], size, plain[name][2]) for name in _TEXTS}
            times = {name: _integers(plain[name], size, "i8") for name in _TIMES}
        except (KeyError, TypeError, ValueError, IndexError, AttributeError):
            raise _broken() from None
        whole = len(alikes) == size and all(
            codes[name].max(initial=-1) < len(names[name]) and codes[name].min(initial=0) >= 0 for name in _TEXTS
        )
        if not whole:
            raise _broken()
        return cls(subjects, alikes, names, codes, times)

    def to_json(self) -> dict[str, Any]:
        """Return the plain form that the registry stores; a column without content is short."""
        texts = {name: [list(self.names[name]), *_small(self.codes[name])] for name in _TEXTS}
        times = {name: "" if (column == NONE).all() else _packed(column) for name, column in self.times.items()}
        alike = self.alikes.astype(">u8").tobytes().hex() if self.alikes.any() else ""
        return {"subject": self.subjects.astype(">u8").tobytes().hex(), "alike": alike} | texts | times

    def of(self, name: str, text: str) -> NDArray[np.bool_]:
        """Return which events have a text in a column."""
        code = self.names[name].index(text) if text in self.names[name] else -1
        having: NDArray[np.bool_] = self.codes[name] == code
        return having

    def named(self, pseudonyms: Collection[str]) -> EventColumns:
        """Return the events of people, and of ids that are written alike, by their pseudonyms."""
        words = _words("".join(pseudonyms))[:, 0]
        return self.taken(np.isin(self.subjects[:, 0], words) | np.isin(self.alikes[:, 0], words))

    def taken(self, mask: NDArray[np.bool_]) -> EventColumns:
        """Return some of the events."""
        codes = {name: column[mask] for name, column in self.codes.items()}
        times = {name: column[mask] for name, column in self.times.items()}
        return EventColumns(self.subjects[mask], self.alikes[mask], self.names, codes, times)

    def events(self) -> Iterator[ConsentEvent]:
        """Yield the events one by one."""
        subjects, alikes = hexadecimal(self.subjects), hexadecimal(self.alikes)
        for place, subject in enumerate(subjects):
            text = {name: self.names[name][self.codes[name][place]] for name in _TEXTS}
            time = {name: _written(int(self.times[name][place])) for name in _TIMES}
            alike = "" if alikes[place] == _UNTOLD else alikes[place]
            row = [subject, text["decided"], text["purpose"], time["at"], time["valid_from"], time["valid_to"]]
            more = {"guardian": text["guardian"], "of_age": time["of_age"], "corrects": time["corrects"]}
            yield ConsentEvent.from_row([*row, text["basis"], text["notice"], alike, more])


def hexadecimal(words: Words) -> list[str]:
    """Return pseudonyms as texts."""
    text = words.astype(">u8").tobytes().hex()
    return [text[start : start + 32] for start in range(0, len(text), 32)]


def _words(text: str) -> Words:
    """Return pseudonyms, of 32 hexadecimal digits each, as two words each."""
    raw = None
    with suppress(ValueError):
        raw = bytes.fromhex(text)
    if raw is None or len(raw) % 16:
        raise LedgerCorrupted("the consent registry holds a pseudonym that is not one: run incrowd consent check.")
    return np.frombuffer(raw, ">u8").reshape(-1, 2).astype(np.uint64)


def moments(texts: Sequence[str | None]) -> Integers:
    """Return moments in microseconds since 1970; one that is not told is `NONE`."""
    try:
        column = pa.array(texts, pa.string()).cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    except pa.ArrowException:
        column = None
    if column is None:
        raise LedgerCorrupted("the consent registry holds a moment that is none: run incrowd consent check.")
    times: Integers = column.fill_null(NONE).to_numpy()
    return times


def _written(time: int) -> str | None:
    return None if time == NONE else written_moment(_START + timedelta(microseconds=time))


def _numbered(texts: Sequence[str]) -> tuple[tuple[str, ...], Integers]:
    numbers: dict[str, int] = {}
    codes = np.fromiter((numbers.setdefault(text, len(numbers)) for text in texts), np.int64, len(texts))
    return tuple(numbers), codes


def _small(codes: Integers) -> tuple[str, str]:
    """Return numbers of texts in the fewest bytes, and their form."""
    form = "u1" if codes.max(initial=0) < 2**8 else "u4"
    return base64.b64encode(codes.astype(f"<{form}").tobytes()).decode(), form


def _packed(column: Integers) -> str:
    return base64.b64encode(column.astype("<i8").tobytes()).decode()


def _integers(text: str, size: int, form: str) -> Integers:
    if not text and form == "i8":
        return np.full(size, NONE)
    if form not in ("u1", "u4", "i8"):
        raise ValueError
    raw = binascii.a2b_base64(text)
    column = np.frombuffer(raw, f"<{form}").astype(np.int64)
    if len(column) != size:
        raise ValueError
    return column


def _broken() -> LedgerCorrupted:
    return LedgerCorrupted("the consent registry holds a batch that is not one: run incrowd consent check.")
