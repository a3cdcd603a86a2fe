"""Subjects: people under a keyed pseudonym, as a registry of consent knows them; the key lies in a place of its own."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field

import pyarrow as pa

from incrowd.core.reading import canonical, read
from incrowd.core.schema import Column
from incrowd.errors import InvalidParameter

LEAST = 32
_DOMAIN = b"incrowd consent subject 1\n"
_SHOWN = 32


@dataclass(frozen=True)
class SubjectKey:
    """HMAC-SHA-256 of an id under a secret key, cut to 128 bits; 17 and "17" are one person where ids are numbers.

    >>> key = SubjectKey(bytes(32))
    >>> key.pseudonym("p17") == key.pseudonym("p17") != key.pseudonym("p18")
    True
    >>> SubjectKey(b"short")
    Traceback (most recent call last):
    incrowd.errors.InvalidParameter: the key of a consent registry has at least 32 bytes: make one with 'openssl ...
    """

    key: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.key) < LEAST:
            raise InvalidParameter(
                f"the key of a consent registry has at least {LEAST} bytes: make one with 'openssl rand -out FILE 32'."
            )

    def pseudonym(self, person: str) -> str:
        """Return the pseudonym of an id that is written in its one way."""
        return hmac.new(self.key, _DOMAIN + person.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[
            :_SHOWN
        ]

    def of(self, text: str, column: Column) -> str:
        """Return the pseudonym of an id as a person wrote it, read as its column declares ids.

        >>> from incrowd.core.domain import Type
        >>> SubjectKey(bytes(32)).of("17.0", Column("id", type=Type.INTEGER)) == SubjectKey(bytes(32)).pseudonym("17")
        True
        """
        (person,) = canonical(read(pa.array([text], pa.string()), column.type).values).to_pylist()
        if person is None:
            raise InvalidParameter(f"this is no id of column {column.name!r}, which is declared as {column.type}.")
        return self.pseudonym(person)
