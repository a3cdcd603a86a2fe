"""Knowledge: what an attacker holds, a publication, and knows, some columns of some people; and who attackers are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.attacks.cover import Lookup, numbers, texts
from incrowd.core.displacement import Displacement
from incrowd.core.words import counted
from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from incrowd.attacks.finding import Finding

_NEAR = 0.05
_SUBSETS = 64


@dataclass(frozen=True, eq=False)
class PublishedTable:
    """What an attacker holds: a table, how its labels are read, which column counts rows, and earlier releases.

    `masks` are the columns whose values were moved, as the published steps say; None if the method is unknown.
    """

    table: pa.Table
    lookups: Mapping[str, Lookup] = field(default_factory=dict)
    count: str | None = None
    earlier: tuple[PublishedTable, ...] = ()
    masks: Mapping[str, Displacement] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that say something about people."""
        return tuple(name for name in self.table.column_names if name != self.count)

    @property
    def weights(self) -> NDArray[np.int64]:
        """How many rows each line stands for; noise may say less than none, which is none."""
        if self.count is None:
            return np.ones(self.table.num_rows, np.int64)
        told = numbers(texts(self.table.column(self.count)))
        return np.maximum(0, np.nan_to_num(told)).round().astype(np.int64)


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What an attacker knows: of which people, which columns, how exactly; and what is looked for.

    `people` are whole records of people in the data: the attacker sees `known` of them, the judge the rest.  `guesses`:
    where several records fit, one is taken; otherwise nothing is said.  `listed`: the attacker does not know who is in
    the data, and is sure only if no other person of the list fits the record.  `diversity`: the l that an algorithm is
    known to demand of every class.
    """

    people: pa.Table
    known: tuple[str, ...]
    secret: str | None = None
    slack: Mapping[str, float] = field(default_factory=dict)
    guesses: bool = False
    listed: bool = False
    person: str | None = None
    item: str | None = None
    separator: str | None = None
    diversity: int | None = None
    few: int = 8
    trials: int = 2000
    seed: int = 0

    @property
    def words(self) -> str:
        """What is known, in words."""
        columns = [f"{name} (within {self.slack[name]:g})" if name in self.slack else name for name in self.known]
        return ", ".join(columns) + (
            ", but not who is in the data" if self.listed else ", and that the person is in the data"
        )

    @property
    def chance(self) -> np.random.Generator:
        """The laboratory's own dice: the same every time, since nothing that they decide protects anybody."""
        return np.random.default_rng(self.seed)


class Attack(Protocol):
    """An adversary: what is published, what is known and who is not in the data come to a finding."""

    def __call__(self, published: PublishedTable, knowledge: Knowledge, outsiders: pa.Table | None) -> Finding:
        """Attack, and hold the success against a blind guess and against outsiders."""


@dataclass(frozen=True)
class Attacker:
    """A kind of adversary, in words, and what knowledge that is."""

    words: str
    knows: Callable[[Knowledge, Sequence[str]], Knowledge]


def _insider(knowledge: Knowledge, columns: Sequence[str]) -> Knowledge:
    return replace(knowledge, known=tuple(name for name in columns if name != knowledge.secret))


def _neighbor(knowledge: Knowledge, _columns: Sequence[str]) -> Knowledge:
    """Know half of the columns, and numbers and days only about."""
    known = knowledge.known[: max(1, (len(knowledge.known) + 1) // 2)]
    slack = {}
    for name in known:
        each = numbers(np.unique(texts(knowledge.people.column(name))))
        if np.isfinite(each).any():
            slack[name] = float(_NEAR * (np.nanmax(each) - np.nanmin(each)))
    return replace(knowledge, known=known, slack=slack)


ATTACKERS: Mapping[str, Attacker] = MappingProxyType(
    {
        "prosecutor": Attacker(
            "knows a person's quasi-identifiers and that the person is in the data", lambda knowledge, _: knowledge
        ),
        "journalist": Attacker(
            "knows the quasi-identifiers of a list of people, not who of them is in the data",
            lambda knowledge, _: replace(knowledge, listed=True),
        ),
        "marketer": Attacker(
            "links everybody, and takes any of the records that fit",
            lambda knowledge, _: replace(knowledge, guesses=True),
        ),
        "insider": Attacker("knows everything of a person but the secret", _insider),
        "neighbor": Attacker("knows half of the quasi-identifiers, numbers and days only about", _neighbor),
    }
)


def sweep(knowledge: Knowledge, most: int) -> list[Knowledge]:
    """Return the knowledge of every combination of at most so many of the known columns.

    >>> [each.known for each in sweep(Knowledge(pa.table({}), ("zip", "age")), 2)]
    [('zip',), ('age',), ('zip', 'age')]
    """
    if most < 1:
        raise InvalidParameter("a sweep takes at least one column at a time.")
    chosen = [each for size in range(1, most + 1) for each in combinations(knowledge.known, size)]
    if len(chosen) > _SUBSETS:
        raise InvalidParameter(
            f"{counted(len(chosen), 'combination')} of columns are more than the {_SUBSETS} tried in one sweep: each "
            "widens the intervals of all. Name fewer columns with --known, or sweep fewer at a time."
        )
    return [replace(knowledge, known=each) for each in chosen]
