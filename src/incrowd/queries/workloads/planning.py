"""Planning: which counting questions of a batch are answered together, from which tables; no row is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from incrowd.queries.catalog import Catalog
from incrowd.queries.workloads.atoms import AtomStrategy
from incrowd.queries.workloads.domain import Counting, Domain, domain_of
from incrowd.queries.workloads.marginals import MOST_CELLS, Axes, Marginals, MarginalStrategy
from incrowd.queries.workloads.shares import Noise

_CLEARLY = 0.999
_MOST_KEYS = 16


@dataclass(frozen=True, eq=False)
class KeyTables:
    """Questions about the same rows, grouped by some of the same keys."""

    questions: tuple[Counting, ...]
    keys: tuple[str, ...]
    marginals: Marginals


@dataclass(frozen=True, eq=False)
class Choice:
    """Questions, by their places in the batch, that a strategy answers better than equal shares do.

    `error` is the total of variances at a price of 1 for these questions together, `equal` that with equal shares.
    """

    places: tuple[int, ...]
    over: KeyTables | Domain
    strategy: MarginalStrategy | AtomStrategy
    error: float
    equal: float


def key_tables(questions: Sequence[Counting]) -> KeyTables:
    """Return questions about the same rows as questions about the keys that they share."""
    sizes = {text: size for each in questions for text, size in zip(each.names, each.sizes, strict=True)}
    keys = tuple(sizes)
    asked = tuple(axes_of(each, keys) for each in questions)
    return KeyTables(tuple(questions), keys, Marginals(tuple(sizes.values()), asked))


def axes_of(each: Counting, keys: Sequence[str]) -> Axes:
    """Return the places of a question's keys, in ascending order."""
    return tuple(sorted(keys.index(text) for text in each.names))


@dataclass(frozen=True, eq=False)
class Groups:
    """The counting questions of a batch, by the rows that they are about; the same for every noise."""

    sources: tuple[tuple[int, ...], ...]
    questions: dict[int, Counting]
    domains: tuple[Domain | None, ...]

    @classmethod
    def of(cls, questions: dict[int, Counting], catalog: Catalog) -> Groups:
        """Group questions, and list the cells that those of a group count."""
        sources = [places for places in _by(questions, lambda each: each.source) if len(places) > 1]
        domains = [domain_of([questions[place] for place in places], catalog) for places in sources]
        return cls(tuple(sources), questions, tuple(domains))

    def choices(self, noise: Noise) -> Iterator[Choice]:
        """Yield for each group what answers its questions with the least total of variances, if something is better."""
        for places, domain in zip(self.sources, self.domains, strict=True):
            parts = list(self._by_keys(places, noise))
            spared = sum((each.equal - each.error) * (len(places) / len(each.places)) ** noise.value for each in parts)
            equal = self._equal(places, noise)
            whole = None if domain is None else domain.atoms.strategy(noise)
            if domain is not None and whole is not None and whole.error < min(equal - spared, equal * _CLEARLY):
                yield Choice(places, domain, whole, whole.error, equal)
            else:
                yield from parts

    def _by_keys(self, places: tuple[int, ...], noise: Noise) -> Iterator[Choice]:
        chosen = {place: self.questions[place] for place in places}
        for same in _by(chosen, lambda each: each.where):
            over = key_tables([self.questions[place] for place in same])
            fitting = (
                len(over.keys) <= _MOST_KEYS and max(map(over.marginals.cells, over.marginals.asked)) <= MOST_CELLS
            )
            strategy = over.marginals.strategy(noise) if len(same) > 1 and fitting else None
            equal = self._equal(same, noise)
            if strategy is not None and strategy.error < equal * _CLEARLY:
                yield Choice(same, over, strategy, strategy.error, equal)

    def _equal(self, places: Sequence[int], noise: Noise) -> float:
        numbers = sum(math.prod(self.questions[place].sizes) for place in places)
        return float(numbers * len(places) ** noise.value)


def _by(questions: dict[int, Counting], mark: Callable[[Counting], Hashable]) -> Iterable[tuple[int, ...]]:
    found: dict[Hashable, list[int]] = {}
    for place, each in questions.items():
        found.setdefault(mark(each), []).append(place)
    return [tuple(places) for places in found.values()]
