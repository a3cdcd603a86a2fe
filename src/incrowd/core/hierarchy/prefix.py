"""Prefixes: the first characters of a text, the rest cut off (Prefix) or starred (Redaction)."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

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
        """How many levels are declared between the value itself and `*`."""
        return len(self.lengths)

    @property
    def rule(self) -> HierarchyRule:
        return HierarchyRule.by_level(RuleKind.PREFIX, self.lengths)

    def characters(self, level: int) -> int | None:
        """How many first characters a class shows; None if that is not declared."""
        return self.lengths[level - 1] if 0 < level <= len(self.lengths) else None

    def _lift(self, values: pa.Array, level: int) -> pa.Array:
        return pc.utf8_slice_codeunits(values, 0, self.lengths[level - 1])

    def _names(self, marks: pa.Array, level: int) -> pa.Array:  # noqa: ARG002 (a prefix is its own label)
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
        """How many levels are declared between the value itself and `*`."""
        return self.length - 1

    @property
    def rule(self) -> HierarchyRule:
        return HierarchyRule(RuleKind.REDACTION, size=self.length)

    def characters(self, level: int) -> int | None:
        """How many first characters a class shows."""
        return max(self.length - level, 0)

    def _lift(self, values: pa.Array, level: int) -> pa.Array:
        return pc.utf8_rtrim(pc.utf8_slice_codeunits(values, 0, self.length - level), TOP)

    def _names(self, marks: pa.Array, level: int) -> pa.Array:  # noqa: ARG002 (the mark has its level's length)
        return pc.utf8_rpad(marks, self.length, TOP)

    def _generalize(self, value: str, level: int) -> str | None:
        inside = written(value, self.domain)
        return inside if inside is None or level == 0 else inside[: self.length - level].ljust(self.length, TOP)
