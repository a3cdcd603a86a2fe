"""Prefixes: the first characters of a text, the rest cut off (Prefix) or starred (Redaction)."""

from __future__ import annotations

import hashlib
import hmac
import itertools
import re
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from incrowd.core.domain import DECLARED, Categories, Provenance, Text
from incrowd.core.hierarchy.flat import written
from incrowd.core.hierarchy.hierarchy import TOP, Hierarchy, HierarchyRule, RuleKind
from incrowd.errors import InvalidParameter


@dataclass(frozen=True)
class Prefix(Hierarchy):
    """The first so many characters, fewer from level to level; a shorter text is its own prefix.

    >>> zips = Prefix(Text(), (4, 3, 2))
    >>> [zips.generalize("02139", level) for level in range(5)]
    ['02139', '0213', '021', '02', '*']
    """

    domain: Text | Categories
    lengths: tuple[int, ...]
    provenance: Provenance = DECLARED

    def __post_init__(self) -> None:
        if not self.lengths or min(self.lengths) < 1:
            raise InvalidParameter("a prefix has at least one character: give lengths of 1 or more, such as 4, 3, 2.")
        for longer, shorter in itertools.pairwise(self.lengths):
            if shorter >= longer:
                raise InvalidParameter(
                    f"prefixes become shorter from level to level: {shorter} cannot follow {longer}."
                )

    @property
    def depth(self) -> int:
        return len(self.lengths)

    @property
    def rule(self) -> HierarchyRule:
        return HierarchyRule.by_level(RuleKind.PREFIX, self.lengths)

    def characters(self, level: int) -> int | None:
        return self.lengths[level - 1] if 0 < level <= len(self.lengths) else None

    def _lift(self, values: pa.Array, level: int) -> pa.Array:
        return pc.utf8_slice_codeunits(values, 0, self.lengths[level - 1])

    def _names(self, marks: pa.Array, level: int) -> pa.Array:
        return marks

    def _generalize(self, value: str, level: int) -> str | None:
        inside = written(value, self.domain)
        return inside if inside is None or level == 0 else inside[: self.lengths[level - 1]]


@dataclass(frozen=True)
class Redaction(Hierarchy):
    """One more character starred from the right on each level, in texts of `length` characters.

    A shorter text is starred up to that length; of a longer one the rest is cut off from level 1 on.

    >>> zips = Redaction(Text(), 5)
    >>> [zips.generalize("02139", level) for level in range(6)]
    ['02139', '0213*', '021**', '02***', '0****', '*']
    """

    domain: Text | Categories
    length: int
    provenance: Provenance = DECLARED

    def __post_init__(self) -> None:
        if self.length < 2:
            raise InvalidParameter("redaction needs texts of at least 2 characters: give their length, such as 5.")

    @property
    def depth(self) -> int:
        return self.length - 1

    @property
    def rule(self) -> HierarchyRule:
        return HierarchyRule(RuleKind.REDACTION, size=self.length)

    def characters(self, level: int) -> int | None:
        return max(self.length - level, 0)

    def _lift(self, values: pa.Array, level: int) -> pa.Array:
        return pc.utf8_rtrim(pc.utf8_slice_codeunits(values, 0, self.length - level), TOP)

    def _names(self, marks: pa.Array, level: int) -> pa.Array:
        return pc.utf8_rpad(marks, self.length, TOP)

    def _generalize(self, value: str, level: int) -> str | None:
        inside = written(value, self.domain)
        return inside if inside is None or level == 0 else inside[: self.length - level].ljust(self.length, TOP)


NO_CHAPTER = "no chapter"


@dataclass(frozen=True)
class Chapters:
    """A classification: how many first characters a level keeps, and the chapters as ranges of first characters."""

    title: str
    lengths: tuple[int, ...]
    ranges: tuple[tuple[str, str, str], ...]


_ICD = """
A00-B99 infectious diseases|C00-D48 neoplasms|D50-D89 blood and immune system|E00-E90 endocrine and metabolic|
F00-F99 mental and behavioral|G00-G99 nervous system|H00-H59 eye|H60-H95 ear|I00-I99 circulatory system|
J00-J99 respiratory system|K00-K93 digestive system|L00-L99 skin|M00-M99 musculoskeletal system|
N00-N99 genitourinary system|O00-O99 pregnancy and birth|P00-P96 perinatal conditions|Q00-Q99 malformations|
R00-R99 symptoms and findings|S00-T98 injury and poisoning|U00-U99 special purposes|V01-Y98 external causes|
Z00-Z99 contact with health services
"""
_ISCO = """
0-0 armed forces|1-1 managers|2-2 professionals|3-3 technicians|4-4 clerical support|5-5 service and sales|
6-6 agriculture, forestry, fishery|7-7 craft and trades|8-8 machine operators|9-9 elementary occupations
"""
_NACE = """
01-03 A agriculture|05-09 B mining|10-33 C manufacturing|35-35 D energy|36-39 E water and waste|41-43 F construction|
45-47 G trade|49-53 H transport|55-56 I hotels and restaurants|58-63 J information|64-66 K finance|68-68 L real estate|
69-75 M science and law|77-82 N business support|84-84 O public administration|85-85 P education|86-88 Q health|
90-93 R arts|94-96 S other services|97-98 T households|99-99 U international bodies
"""


def _ranges(text: str) -> tuple[tuple[str, str, str], ...]:
    matches = [re.fullmatch(r"(\w+)-(\w+) (.+)", line.strip()) for line in text.replace("\n", "").split("|")]
    return tuple((match[1], match[2], f"{match[1]}-{match[2]} {match[3]}") for match in matches if match)


CLASSIFICATIONS = {
    "icd-10": Chapters("ICD-10", (3,), _ranges(_ICD)),
    "isco-08": Chapters("ISCO-08", (3, 2), _ranges(_ISCO)),
    "nace-2": Chapters("NACE Rev. 2", (2,), _ranges(_NACE)),
}
"""Diseases, occupations and industries, by the names that policies use."""


@dataclass(frozen=True)
class Classification(Hierarchy):
    """First characters of a code, fewer from level to level, then the chapter that the last of them lie in.

    >>> diseases = Classification(Text(), "icd-10")
    >>> [diseases.generalize("J18.9", level) for level in range(4)]
    ['J18.9', 'J18', 'J00-J99 respiratory system', '*']
    >>> diseases.generalize("unknown", 2), Classification(Text(), "nace-2").generalize("62.01", 2)
    ('no chapter', '58-63 J information')
    """

    domain: Text
    name: str
    provenance: Provenance = DECLARED

    def __post_init__(self) -> None:
        if self.name not in CLASSIFICATIONS:
            raise InvalidParameter(
                f"there is no classification {self.name!r} here; there are {', '.join(CLASSIFICATIONS)}."
            )

    @cached_property
    def _chapters(self) -> Chapters:
        return CLASSIFICATIONS[self.name]

    @property
    def depth(self) -> int:
        return len(self._chapters.lengths) + 1

    @property
    def rule(self) -> HierarchyRule:
        return HierarchyRule(RuleKind.CLASSIFICATION, ((self._chapters.title,),))

    def characters(self, level: int) -> int | None:
        return self._chapters.lengths[level - 1] if 0 < level < self.depth else None

    def _lift(self, values: pa.Array, level: int) -> pa.Array:
        if level < self.depth:
            return pc.utf8_slice_codeunits(values, 0, self._chapters.lengths[level - 1])
        coded = values.dictionary_encode()
        marks = [None if code is None else self._place(code)[0] for code in coded.dictionary.to_pylist()]
        return pa.array(marks, pa.string()).take(coded.indices)

    def _names(self, marks: pa.Array, level: int) -> pa.Array:
        if level < self.depth:
            return marks
        return pa.array([None if mark is None else self._place(mark)[1] for mark in marks.to_pylist()], pa.string())

    def _generalize(self, value: str, level: int) -> str | None:
        if level == 0:
            return value
        return value[: self._chapters.lengths[level - 1]] if level < self.depth else self._place(value)[1]

    def _members(self, level: int) -> pa.Array | None:
        if level < self.depth:
            return None
        return pa.array([*(first for first, _, _ in self._chapters.ranges), ""], pa.string())

    def _place(self, code: str) -> tuple[str, str]:
        """Return the first prefix of the chapter that a code lies in, and its label."""
        firsts = [first for first, _, _ in self._chapters.ranges]
        prefix = code[: len(firsts[0])]
        place = bisect_right(firsts, prefix) - 1
        if place >= 0 and len(prefix) == len(firsts[0]) and prefix <= self._chapters.ranges[place][1]:
            first, _, label = self._chapters.ranges[place]
            return first, label
        return "", NO_CHAPTER


_LEAST_KEY = 32  # bytes: as long as the HMAC's digest, beyond guessing
_SHOWN = 32  # hexadecimal digits: 128 bits, so that among 2³² people two collide with a chance below 2⁻⁶⁴


@dataclass(frozen=True)
class Pseudonyms(Hierarchy):
    """HMAC-SHA-256 under a secret key, cut to 128 bits: level 1; the value itself, level 0, is never released.

    It hides a name from those without the key, and nothing else: the same value has the same pseudonym in every
    release made with that key.

    >>> sites = Pseudonyms(Text(), bytes(32))
    >>> sites.generalize("St. Anne", 1) == sites.generalize("St. Anne", 1) != sites.generalize("St. Paul", 1)
    True
    >>> Pseudonyms(Text(), b"secret")
    Traceback (most recent call last):
    incrowd.errors.InvalidParameter: a pseudonym's key needs at least 32 bytes ...
    """

    depth = 1
    rule = HierarchyRule(RuleKind.PSEUDONYM)

    domain: Text | Categories
    key: bytes = field(repr=False)
    provenance: Provenance = DECLARED

    def __post_init__(self) -> None:
        if len(self.key) < _LEAST_KEY:
            raise InvalidParameter(
                "a pseudonym's key needs at least 32 bytes of chance: make one with 'openssl rand -out FILE 32'."
            )

    def _lift(self, values: pa.Array, level: int) -> pa.Array:
        coded = values.dictionary_encode()
        names = [None if value is None else self._pseudonym(value) for value in coded.dictionary.to_pylist()]
        return pa.array(names, pa.string()).take(coded.indices)

    def _members(self, level: int) -> pa.Array | None:
        """Return pseudonyms in their own order: that of the values would tell which is whose."""
        members = super()._members(level)
        return members if members is None or level == 0 else members.sort()

    def _names(self, marks: pa.Array, level: int) -> pa.Array:
        return marks

    def _generalize(self, value: str, level: int) -> str | None:
        inside = written(value, self.domain)
        return inside if inside is None or level == 0 else self._pseudonym(inside)

    def _pseudonym(self, value: str) -> str:
        return hmac.new(self.key, value.encode(), hashlib.sha256).hexdigest()[:_SHOWN]
