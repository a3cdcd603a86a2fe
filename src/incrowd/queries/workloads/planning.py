"""Planning: which counting questions of a batch are answered together, from which tables; no row is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from incrowd.queries.catalog import Catalog
from incrowd.queries.workloads.atoms import AtomStrategy
from incrowd.queries.workloads.domain import (
    CountQuestion,
    Domain,
    cell_table,
    columns_of,
    domain_of,
    domain_over,
    listed_columns,
)
from incrowd.queries.workloads.marginals import MOST_CELLS, Axes, KeyMarginals, MarginalStrategy
from incrowd.queries.workloads.shares import NoiseKind

_CLEARLY = 0.999
_MOST_KEYS = 16
_MOST_CELLS = 2**20


@dataclass(frozen=True, eq=False)
class KeyTables:
    """Questions about the same rows, grouped by some of the same keys."""

    questions: tuple[CountQuestion, ...]
    keys: tuple[str, ...]
    marginals: KeyMarginals


@dataclass(frozen=True, eq=False)
class SetChoice:
    """Questions, by their places in the batch, that a strategy answers better than equal shares do.

    `error` is the total of variances at a price of 1 for these questions together, `equal` that with equal shares.
    """

    places: tuple[int, ...]
    over: KeyTables | Domain
    strategy: MarginalStrategy | AtomStrategy
    error: float
    equal: float


def key_tables(questions: Sequence[CountQuestion]) -> KeyTables:
    """Return questions about the same rows as questions about the keys that they share."""
    sizes = {text: size for each in questions for text, size in zip(each.names, each.sizes, strict=True)}
    keys = tuple(sizes)
    asked = tuple(axes_of(each, keys) for each in questions)
    return KeyTables(tuple(questions), keys, KeyMarginals(tuple(sizes.values()), asked))


def axes_of(each: CountQuestion, keys: Sequence[str]) -> Axes:
    """Return the places of a question's keys, in ascending order."""
    return tuple(sorted(keys.index(text) for text in each.names))


@dataclass(frozen=True, eq=False)
class SetPlanner:
    """The counting questions of a batch, by the rows that they are about; the same for every noise.

    `domains` are the declared domains over which questions of a group count, by the places of these questions.
    """

    sources: tuple[tuple[int, ...], ...]
    questions: Mapping[int, CountQuestion]
    domains: tuple[Mapping[tuple[int, ...], Domain], ...]

    @classmethod
    def of(cls, questions: Mapping[int, CountQuestion], catalog: Catalog) -> SetPlanner:
        """Group questions, and list the cells that those of a group count."""
        sources = [places for places in _by(questions, lambda each: each.source) if len(places) > 1]
        domains = [_domains({place: questions[place] for place in places}, catalog) for places in sources]
        return cls(tuple(sources), questions, tuple(domains))

    def choices(self, noise: NoiseKind) -> Iterator[SetChoice]:
        """Yield for each group what answers its questions with the least total of variances, if something is better."""
        for places, domains in zip(self.sources, self.domains, strict=True):
            by_keys, by_cells = list(self._by_keys(places, noise)), list(self._by_cells(domains, noise))
            options = [[*by_keys, *_apart(by_cells, by_keys)], [*by_cells, *_apart(by_keys, by_cells)]]
            yield from max(options, key=lambda each: _spared(each, noise))

    def _by_cells(self, domains: Mapping[tuple[int, ...], Domain], noise: NoiseKind) -> Iterator[SetChoice]:
        for places, domain in domains.items():
            strategy, equal = domain.atoms.strategy(noise), self._equal(places, noise)
            if strategy.error < equal * _CLEARLY:
                yield SetChoice(places, domain, strategy, strategy.error, equal)

    def _by_keys(self, places: tuple[int, ...], noise: NoiseKind) -> Iterator[SetChoice]:
        chosen = {place: self.questions[place] for place in places}
        for same in _by(chosen, lambda each: each.where):
            over = key_tables([self.questions[place] for place in same])
            fitting = (
                len(over.keys) <= _MOST_KEYS and max(map(over.marginals.cells, over.marginals.asked)) <= MOST_CELLS
            )
            strategy = over.marginals.strategy(noise) if len(same) > 1 and fitting else None
            equal = self._equal(same, noise)
            if strategy is not None and strategy.error < equal * _CLEARLY:
                yield SetChoice(same, over, strategy, strategy.error, equal)

    def _equal(self, places: Sequence[int], noise: NoiseKind) -> float:
        numbers = sum(math.prod(self.questions[place].sizes) for place in places)
        return float(numbers * len(places) ** noise.value)


def _domains(questions: Mapping[int, CountQuestion], catalog: Catalog) -> dict[tuple[int, ...], Domain]:
    """Return one domain for all questions about declared columns; if it is too large, one for each set of columns.

    All of these together have so many cells at most, those with the most questions first.
    """
    single = {place: each for place, each in questions.items() if each.single}
    tables = {table for each in single.values() for table in each.question.tables}
    listed = {table: listed_columns(table, catalog) for table in tables}
    known = {place: each for place, each in single.items() if columns_of(each) <= listed[each.question.tables[0]]}
    groups = [tuple(known)] if len(known) > 1 else []
    whole = domain_of([known[place] for place in groups[0]], catalog) if groups else None
    if whole is not None:
        return {groups[0]: whole}
    several = [places for places in _by(known, columns_of) if len(places) > 1]
    found, left = dict[tuple[int, ...], Domain](), _MOST_CELLS
    for places in sorted(several, key=len, reverse=True):
        some = [known[place] for place in places]
        table = cell_table(some, catalog)
        if table is not None and table.number <= left:
            left -= table.number
            domain = domain_over(table, some, catalog)
            found |= {} if domain is None else {places: domain}
    return found


def _apart(choices: Sequence[SetChoice], others: Sequence[SetChoice]) -> list[SetChoice]:
    """Return those choices that have no question in common with others."""
    taken = {place for each in others for place in each.places}
    return [each for each in choices if taken.isdisjoint(each.places)]


def _spared(choices: Sequence[SetChoice], noise: NoiseKind) -> float:
    """Return by how much the total of variances falls; the price of a choice is in proportion to its questions."""
    return sum((each.equal - each.error) / len(each.places) ** noise.value for each in choices)


def _by(questions: Mapping[int, CountQuestion], mark: Callable[[CountQuestion], Hashable]) -> Iterable[tuple[int, ...]]:
    found: dict[Hashable, list[int]] = {}
    for place, each in questions.items():
        found.setdefault(mark(each), []).append(place)
    return [tuple(places) for places in found.values()]
