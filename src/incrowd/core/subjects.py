"""Subjects: people under keyed pseudonyms, as a consent registry stores them; the key is stored elsewhere.

An id is read without surrounding space and in the Unicode form NFC, in the data as in decisions.  Ids that then still
differ are different ids.  Ids that differ in case, leading zeros of numbers, width or invisible characters alone are
*written alike*, and so are a FHIR reference to a patient and the id in it.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import unicodedata
from dataclasses import dataclass, field

import pyarrow as pa

from incrowd.core.reading import canonical, read
from incrowd.core.schema import Column
from incrowd.errors import InvalidParameter

LEAST = 32  # bytes: as long as the HMAC's digest, beyond guessing
_DOMAIN = b"incrowd consent subject 1\n"
_ALIKE = b"incrowd consent alike 1\n"
_SHOWN = 32  # hexadecimal digits: 128 bits, so that among 2³² people two collide with a chance below 2⁻⁶⁴
_REFERENCE = re.compile(r"(?:.*/)?Patient/([^/?#\s]{1,64})(?:/_history/[^/?#\s]{1,64})?")
_LEADING = re.compile(r"(?<![0-9])0+(?=[0-9])")


def normal_id(text: str) -> str:
    r"""Return an id as it is compared: without surrounding space, in the Unicode form NFC.

    >>> normal_id(" p17\u00a0"), normal_id("Zoe\u0308") == "Zoë"
    ('p17', True)
    """
    return text.strip() if text.isascii() else unicodedata.normalize("NFC", text).strip()


def patient_of(reference: str) -> str | None:
    """Return the id in a FHIR reference to a patient: relative, absolute or of one version; None for any other text.

    >>> patient_of("Patient/b10"), patient_of("https://fhir.example/r4/Patient/b10/_history/2"), patient_of("b10")
    ('b10', 'b10', None)
    """
    match = _REFERENCE.fullmatch(reference.strip()) if "Patient/" in reference else None
    return None if match is None else match[1]


def alike_form(text: str) -> str:
    """Return the one text that all ids have that are written alike.

    >>> {alike_form(each) for each in ("B000010", "b10", " B0010 ", "https://fhir.example/Patient/B000010")}
    {'b10'}
    """
    own = patient_of(text) or text
    if own.isascii():
        return _LEADING.sub("", own.casefold().strip())
    plain = unicodedata.normalize("NFKC", own).casefold()
    seen = "".join(letter for letter in unicodedata.normalize("NFKC", plain) if unicodedata.category(letter) != "Cf")
    digits = "".join(str(unicodedata.decimal(letter, letter)) for letter in seen.strip())
    return _LEADING.sub("", digits)


def written_id(text: str, column: Column) -> str:
    """Return an id as a person wrote it in the one way in which its column writes ids, or refuse what is not an id."""
    (person,) = canonical(read(pa.array([text], pa.string()), column.type).values).to_pylist()
    if person is None or not normal_id(person):
        raise InvalidParameter(f"this is not an id of column {column.name!r}, which is declared as {column.type}.")
    return normal_id(person)


@dataclass(frozen=True)
class Subject:
    """A person as a registry stores them: the pseudonym of the id, and one for all ids that are written alike."""

    pseudonym: str
    alike: str


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
        return self._under(_DOMAIN, normal_id(person))

    def of(self, text: str, column: Column) -> str:
        """Return the pseudonym of an id as a person wrote it, read as its column declares ids.

        >>> from incrowd.core.domain import Type
        >>> SubjectKey(bytes(32)).of("17.0", Column("id", type=Type.INTEGER)) == SubjectKey(bytes(32)).pseudonym("17")
        True
        """
        return self.subject(text, column).pseudonym

    def subject(self, text: str, column: Column) -> Subject:
        """Return the pseudonyms of an id as a person wrote it, read as its column declares ids."""
        return self.linked(written_id(text, column))

    def linked(self, person: str) -> Subject:
        """Return the pseudonyms of an id that is written in its one way."""
        return Subject(self.pseudonym(person), self._under(_ALIKE, alike_form(person)))

    def _under(self, domain: bytes, text: str) -> str:
        return hmac.new(self.key, domain + text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:_SHOWN]
