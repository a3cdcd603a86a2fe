"""Encodings: which one some text has that is not UTF-8, by the alphabets of the languages written in each."""

from __future__ import annotations

import re
from collections import Counter

_LIKELY = ("cp1252", "cp1250", "iso8859_2", "cp1251", "koi8_r", "cp1253", "cp1254", "cp1257", "cp850")
"""The single-byte encodings that are guessed, the most frequent first; latin-1 is a part of cp1252."""
_EAST = ("cp932", "gb18030", "cp949", "big5", "euc_jp")
"""The encodings of Japanese, Chinese and Korean that are guessed; they write a sign as several bytes."""
_EURO, _CURRENCY = "iso8859_15", b"\xa4"  # nobody writes the sign for any currency: where it stands, it is a euro

_WEST = "äöüß àâçéèêëîïôùûœ áéíóúüñ áâãàçéêíóôõú àéèìòù éëïóöü åäöé æøåé áéíóúýðþæö àçéèíòóú"
_CENTRAL = "áčďéěíňóřšťúůýž áäčďéíĺľňóôŕšťúýž ąćęłńóśźż áéíóöőúüű čćđšž ăâîşţ"
_ALPHABETS = {
    "cp1252": (*_WEST.split(), "äöüßéèêëàâáíóúñçåæøîïôûœ"),  # the last one where languages are mixed
    "cp1250": _CENTRAL.split(),
    "iso8859_2": _CENTRAL.split(),
    "cp1254": ("çğıöşü",),
    "cp1257": ("äöõüšž", "āčēģīķļņšūž", "ąčęėįšųūž"),
    "cp850": _WEST.split(),
}
"""The letters beyond ASCII of languages, by encoding: in one of another language they do not occur together."""
_NEARLY = 0.9  # of the letters beyond ASCII: the others may be foreign names
_SIGNS = frozenset("€¤‚„“”‘’–—…°§«»·²³µ\u00a0")
_WITHIN = re.compile(r"(?<=[^\W\d_])[‚„“”–—…°§«»²³µ\u00a0](?=[^\W\d_])")  # no word has such a sign within
_ASCII, _SOME = 127, 0.5  # where most bytes are above 127, the text is in no Latin letters
_JUDGED = 1 << 16  # bytes shown to the guesser of encodings, which is slow
_AS_GOOD = 0.03  # encodings whose scores differ by less are equally good, and the usual one is taken


def likely_encoding(content: bytes) -> str:
    """Guess the encoding of some text that is not UTF-8.

    >>> likely_encoding("Straße;Größe;Mädchen;Übergröße".encode("cp1252"))
    'cp1252'
    >>> likely_encoding("Rodné číslo;Příjmení;Datum narození;Brno-město;Kč".encode("cp1250"))
    'cp1250'
    >>> likely_encoding("Adı Soyadı;Doğum tarihi;Başvuru günü;Kadın".encode("cp1254"))
    'cp1254'
    """
    lines = b"\n".join(line for line in content.split(b"\n") if not line.isascii())
    lines = lines[:_JUDGED].rpartition(b"\n")[0] if len(lines) > _JUDGED else lines  # no sign is cut in two
    if sum(byte > _ASCII for byte in lines) < _SOME * len(lines):
        scores = {name: _share_of_letters(lines, name) for name in _ALPHABETS}
        best = max(scores, key=lambda name: scores[name])
        if scores[best] >= _NEARLY:
            return _EURO if best == _LIKELY[0] and _CURRENCY in lines and not _has_controls(lines, "latin-1") else best
    return _by_statistics(lines)


def _share_of_letters(lines: bytes, encoding: str) -> float:
    """Return the largest share of the characters beyond ASCII that a language has which is written in an encoding."""
    text = lines.decode(encoding, errors="replace").lower()
    within = len(_WITHIN.findall(text))
    characters = Counter(character for character in text if ord(character) > _ASCII and character not in _SIGNS)
    letters = [sum(characters[letter] for letter in alphabet) for alphabet in _ALPHABETS[encoding]]
    return max(letters) / max(1, characters.total() + within)


def _by_statistics(lines: bytes) -> str:
    """Return the encoding in which texts look most like a language, by counts of pairs of letters and of signs."""
    from charset_normalizer import from_bytes

    matches = list(from_bytes(lines, cp_isolation=[*_LIKELY, *_EAST], threshold=1.0))
    by_name = {name: match for match in reversed(matches) for name in match.could_be_from_charset}
    least = min((match.chaos for match in matches), default=0.0)
    good = [name for name in (*_LIKELY, *_EAST) if name in by_name and by_name[name].chaos <= least + _AS_GOOD]
    good = [name for name in good if not _has_controls(lines, name)] or good
    return max(good, key=lambda name: by_name[name].coherence + _AS_GOOD * (name == _LIKELY[0]), default=_LIKELY[0])


def _has_controls(lines: bytes, encoding: str) -> bool:
    """Whether some bytes are control characters in an encoding: no text has any, and cp1250 has letters there."""
    return any("\x80" <= character <= "\x9f" for character in lines.decode(encoding, errors="ignore"))
