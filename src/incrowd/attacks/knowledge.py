"""Knowledge: the published table that an attacker has, the columns that an attacker knows, and kinds of attackers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from incrowd.attacks.cover import Lookup, numbers, texts
from incrowd.core.displacement import Displacement
from incrowd.core.words import counted
from incrowd.errors import InvalidParameter

if TYPE_CHECKING:
    from incrowd.attacks.finding import Finding

Part = TypeVar("Part")
_PARTS = 24
"""Parts of a search that a table keeps, the newest: a sweep over many columns makes many more."""
_NEAR = 0.05  # of the range: a guess this near counts as right
_SUBSETS = 64  # each combination is an attack of its own, and intervals widen with their number


@dataclass(frozen=True, eq=False)
class PublishedTable:
    """A published table: how its labels are read, which column counts rows, and earlier releases.

    `masks` are the columns whose values were moved, according to the published steps; None if the method is unknown.
    """

    table: pa.Table
    lookups: Mapping[str, Lookup] = field(default_factory=dict)
    count: str | None = None
    earlier: tuple[PublishedTable, ...] = ()
    masks: Mapping[str, Displacement] | None = None
    _shared: dict[tuple[Hashable, ...], tuple[Any, tuple[object, ...]]] = field(default_factory=dict, init=False)

    def once(self, what: tuple[Hashable, ...], make: Callable[[], Part], *sources: object) -> Part:
        """Return what `make` computes from this table and other `sources`; attacks on one table share it.

        It depends on `what` and on these very objects alone, which are kept with it.
        """
        key = (*what, *map(id, sources))
        if key not in self._shared:
            made = make()
            if len(self._shared) >= _PARTS:
                del self._shared[next(iter(self._shared))]
            self._shared[key] = (made, sources)
        part: Part = self._shared[key][0]
        return part

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that say something about people."""
        return tuple(name for name in self.table.column_names if name != self.count)

    @property
    def weights(self) -> NDArray[np.int64]:
        """The number of rows that each line counts; a noisy count below zero is zero."""
        if self.count is None:
            return np.ones(self.table.num_rows, np.int64)
        counts = numbers(texts(self.table.column(self.count)))
        return np.maximum(0, np.nan_to_num(counts)).round().astype(np.int64)


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What an attacker knows: of which people, which columns, how exactly; and which column is the secret.

    `people` are whole records of people in the data: the attacker sees their `known_columns`, the judge the rest.
    `guesses`: where several records fit, the attacker takes one; otherwise none.  `listed`: the attacker does not know
    who is in the data, and is sure only if no other person on the list fits the record.  `diversity`: the l that the
    algorithm is known to require of every class.
    """

    people: pa.Table
    known_columns: tuple[str, ...]
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
        """What the attacker knows, as text."""
        columns = [
            f"{name} (within {self.slack[name]:g})" if name in self.slack else name for name in self.known_columns
        ]
        return ", ".join(columns) + (
            ", but not who is in the data" if self.listed else ", and that the person is in the data"
        )

    @property
    def chance(self) -> np.random.Generator:
        """A seeded generator: attacks are repeatable, and nothing that it decides protects anybody."""
        return np.random.default_rng(self.seed)


class Attack(Protocol):
    """An adversary: from a published table, knowledge and a control group to a finding."""

    def __call__(self, published: PublishedTable, knowledge: Knowledge, control: pa.Table | None) -> Finding:
        """Attack, and compare the success with the baseline and the control group."""


@dataclass(frozen=True)
class Attacker:
    """A kind of adversary: a description, and how it changes the knowledge."""

    words: str
    knows: Callable[[Knowledge, Sequence[str]], Knowledge]


def _insider(knowledge: Knowledge, columns: Sequence[str]) -> Knowledge:
    return replace(knowledge, known_columns=tuple(name for name in columns if name != knowledge.secret))


def _neighbor(knowledge: Knowledge, _columns: Sequence[str]) -> Knowledge:
    """Know half of the columns, with numbers and days only approximately."""
    known_columns = knowledge.known_columns[: max(1, (len(knowledge.known_columns) + 1) // 2)]
    slack = {}
    for name in known_columns:
        values = numbers(np.unique(texts(knowledge.people.column(name))))
        if np.isfinite(values).any():
            slack[name] = float(_NEAR * (np.nanmax(values) - np.nanmin(values)))
    return replace(knowledge, known_columns=known_columns, slack=slack)


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
        "neighbor": Attacker("knows half of the quasi-identifiers, numbers and days only approximately", _neighbor),
    }
)


def sweep(knowledge: Knowledge, most: int) -> list[Knowledge]:
    """Return the knowledge of every combination of at most `most` known columns.

    >>> [subset.known_columns for subset in sweep(Knowledge(pa.table({}), ("zip", "age")), 2)]
    [('zip',), ('age',), ('zip', 'age')]
    """
    if most < 1:
        raise InvalidParameter("a sweep takes at least one column at a time.")
    subsets = [columns for size in range(1, most + 1) for columns in combinations(knowledge.known_columns, size)]
    if len(subsets) > _SUBSETS:
        raise InvalidParameter(
            f"{counted(len(subsets), 'combination')} of columns are more than the {_SUBSETS} of one sweep: each one "
            f"widens "
            "the confidence intervals of all. Name fewer columns with --known, or sweep fewer at a time."
        )
    return [replace(knowledge, known_columns=columns) for columns in subsets]
