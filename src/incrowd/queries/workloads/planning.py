"""Planning: which counting queries of a batch are answered together, from which tables; no row is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from incrowd.core.steps.step import Step
from incrowd.core.unit import Unit
from incrowd.errors import InvalidParameter
from incrowd.queries.query import Catalog, QueryTerms
from incrowd.queries.steps.query import Understand
from incrowd.queries.steps.workload import AnswerSet, CountBlocks
from incrowd.queries.workloads.atoms import AtomStrategy, Blocks, NoiseKind, exact_shares
from incrowd.queries.workloads.domain import (
    CountQuery,
    Domain,
    cell_table,
    columns_of,
    domain_of,
    domain_over,
    listed_columns,
    read_table,
    table_of,
)
from incrowd.queries.workloads.marginals import MOST_CELLS, KeyTables, MarginalStrategy, key_tables
from incrowd.queries.workloads.query_set import CountTable, CountWorkload

_CLEARLY = 0.999  # a strategy must be better by a thousandth, else queries are answered one by one
_MOST_KEYS = 16  # 2¹⁶ sets of columns are weighed at most
_MOST_CELLS = 2**20  # counts of all tables of a batch: 8 MB


@dataclass(frozen=True, eq=False)
class SetChoice:
    """Queries, by their places in the batch, that a strategy answers better than equal shares do.

    `error` is the total of variances at a price of 1 for these queries together, `equal` that with equal shares.
    """

    places: tuple[int, ...]
    over: KeyTables | Domain
    strategy: MarginalStrategy | AtomStrategy
    error: float
    equal: float


@dataclass(frozen=True, eq=False)
class SetPlanner:
    """The counting queries of a batch, by the rows that they are about; the same for every noise.

    `domains` are the declared domains over which queries of a group count, by the places of these queries.
    """

    sources: tuple[tuple[int, ...], ...]
    questions: Mapping[int, CountQuery]
    domains: tuple[Mapping[tuple[int, ...], Domain], ...]

    @classmethod
    def of(cls, queries: Mapping[int, CountQuery], catalog: Catalog) -> SetPlanner:
        """Group queries, and list the cells that those of a group count."""
        sources = [places for places in _by(queries, lambda query: query.source) if len(places) > 1]
        domains = [_domains({place: queries[place] for place in places}, catalog) for places in sources]
        return cls(tuple(sources), queries, tuple(domains))

    def choices(self, noise: NoiseKind) -> Iterator[SetChoice]:
        """Yield for each group what answers its queries with the least total of variances, if something is better."""
        for places, domains in zip(self.sources, self.domains, strict=True):
            by_keys, by_cells = list(self._by_keys(places, noise)), list(self._by_cells(domains, noise))
            options = [[*by_keys, *_apart(by_cells, by_keys)], [*by_cells, *_apart(by_keys, by_cells)]]
            yield from max(options, key=lambda option: _spared(option, noise))

    def _by_cells(self, domains: Mapping[tuple[int, ...], Domain], noise: NoiseKind) -> Iterator[SetChoice]:
        for places, domain in domains.items():
            strategy, equal = domain.atoms.strategy(noise), self._equal(places, noise)
            if strategy.error < equal * _CLEARLY:
                yield SetChoice(places, domain, strategy, strategy.error, equal)

    def _by_keys(self, places: tuple[int, ...], noise: NoiseKind) -> Iterator[SetChoice]:
        chosen = {place: self.questions[place] for place in places}
        for same in _by(chosen, lambda query: query.where):
            over = key_tables([self.questions[place] for place in same])
            fitting = (
                len(over.keys) <= _MOST_KEYS and max(map(over.marginals.cells, over.marginals.questions)) <= MOST_CELLS
            )
            strategy = over.marginals.strategy(noise) if len(same) > 1 and fitting else None
            equal = self._equal(same, noise)
            if strategy is not None and strategy.error < equal * _CLEARLY:
                yield SetChoice(same, over, strategy, strategy.error, equal)

    def _equal(self, places: Sequence[int], noise: NoiseKind) -> float:
        numbers = sum(math.prod(self.questions[place].sizes) for place in places)
        return float(numbers * len(places) ** noise.value)


def _domains(queries: Mapping[int, CountQuery], catalog: Catalog) -> dict[tuple[int, ...], Domain]:
    """Return one domain for all queries about declared columns; if it is too large, one for each set of columns.

    All of these together have so many cells at most, those with the most queries first.
    """
    single = {place: query for place, query in queries.items() if query.single}
    tables = {table for query in single.values() for table in query.question.tables}
    listed = {table: listed_columns(table, catalog) for table in tables}
    listable = {
        place: query for place, query in single.items() if columns_of(query) <= listed[query.question.tables[0]]
    }
    groups = [tuple(listable)] if len(listable) > 1 else []
    whole = domain_of([listable[place] for place in groups[0]], catalog) if groups else None
    if whole is not None:
        return {groups[0]: whole}
    several = [places for places in _by(listable, columns_of) if len(places) > 1]
    domains, left = dict[tuple[int, ...], Domain](), _MOST_CELLS
    for places in sorted(several, key=len, reverse=True):
        some = [listable[place] for place in places]
        table = cell_table(some, catalog)
        if table is not None and table.number <= left:
            left -= table.number
            domain = domain_over(table, some, catalog)
            domains |= {} if domain is None else {places: domain}
    return domains


def _apart(choices: Sequence[SetChoice], others: Sequence[SetChoice]) -> list[SetChoice]:
    """Return those choices that have no query in common with others."""
    taken = {place for other in others for place in other.places}
    return [choice for choice in choices if taken.isdisjoint(choice.places)]


def _spared(choices: Sequence[SetChoice], noise: NoiseKind) -> float:
    """Return by how much the total of variances falls; the price of a choice is in proportion to its queries."""
    return sum((choice.equal - choice.error) / len(choice.places) ** noise.value for choice in choices)


def _by(queries: Mapping[int, CountQuery], mark: Callable[[CountQuery], Hashable]) -> Iterable[tuple[int, ...]]:
    places_by: dict[Hashable, list[int]] = {}
    for place, query in queries.items():
        places_by.setdefault(mark(query), []).append(place)
    return [tuple(places) for places in places_by.values()]


Kept = TypeVar("Kept", bound=Step)


def chosen_set(
    choice: SetChoice, queries: Sequence[CountQuery], unit: Unit, paid: QueryTerms, catalog: Catalog
) -> CountWorkload:
    """Return the queries of a choice on terms: ε or ρ for all of them, which their tables share."""
    over = choice.over
    terms = [_share(paid, share) for share in exact_shares(list(choice.strategy.shares))]
    if isinstance(over, KeyTables) and isinstance(choice.strategy, MarginalStrategy):
        nodes = {text: key for query in over.questions for text, key in zip(query.names, query.keys, strict=True)}
        trees = [nodes[text] for text in over.keys]
        tables = [
            table_of(queries[0], [trees[at] for at in axes], catalog, filtered=True) for axes in choice.strategy.sets
        ]
        parts = [CountTable.of(table, unit, term) for table, term in zip(tables, terms, strict=True)]
    elif isinstance(over, Domain) and isinstance(choice.strategy, AtomStrategy):
        pairs = zip(choice.strategy.parts, terms, strict=True)
        parts = [CountTable.of(over.table, unit, term, blocks) for blocks, term in pairs]
    else:
        raise TypeError("a strategy is one for what it is over")
    return CountWorkload(choice.places, tuple(queries), tuple(parts), over, unit)


def _share(paid: QueryTerms, share: Fraction) -> QueryTerms:
    if paid.rho is not None:
        return QueryTerms(rho=paid.rho * share)
    return QueryTerms(epsilon=(paid.epsilon or Fraction(0)) * share)


def set_again(step: AnswerSet, queries: Sequence[CountQuery], unit: Unit, catalog: Catalog) -> CountWorkload:
    """Return the plan of a query workload from what its certificate says: the same tables, on the same terms.

    Refused are tables that do not tell what is asked, and those in which a row would count twice.
    """
    steps_of_parts = [(_first(steps, Understand), _first(steps, CountBlocks)) for steps in step.parts]
    blocks = [None if part_ is None else Blocks(part_.size, part_.questions or ()) for _, part_ in steps_of_parts]
    terms = [terms_of({} if understood is None else understood.terms) for understood, _ in steps_of_parts]
    if len({query.source for query in queries}) != 1:
        raise InvalidParameter("these queries are not about the same rows.")
    over: KeyTables | Domain
    if any(blocks):
        over, tables = _cells_again(queries, blocks, catalog)
    else:
        over, tables = _keys_again(
            queries, [understood.question if understood else "" for understood, _ in steps_of_parts], catalog
        )
    part_ = zip(tables, terms, blocks, strict=True)
    parts = tuple(CountTable.of(table, unit, paid, part) for table, paid, part in part_)
    return CountWorkload(step.places, tuple(queries), parts, over, unit)


def _cells_again(
    queries: Sequence[CountQuery], blocks: Sequence[Blocks | None], catalog: Catalog
) -> tuple[Domain, list[CountQuery]]:
    """Return the domain of queries, and its table for each of the parts, if the blocks of each are disjoint."""
    domain = domain_of(queries, catalog)
    block_sets = [block for block in blocks if block is not None]
    places = {place for block in block_sets for place in block.questions}
    if domain is None or len(block_sets) < len(blocks) or not places <= set(range(len(queries))):
        raise InvalidParameter("these queries are not about one declared domain.")
    for block in block_sets:
        domain.atoms.blocks(block)  # raises where a row would count twice
    if Blocks(1) not in block_sets and len(places) < len(queries):
        raise InvalidParameter("these blocks do not tell what is asked.")
    return domain, [domain.table for _ in blocks]


def _keys_again(
    queries: Sequence[CountQuery], texts: Sequence[str], catalog: Catalog
) -> tuple[KeyTables, list[CountQuery]]:
    """Return queries by their keys, and tables by the keys that these texts name, if they tell what is asked."""
    over = key_tables(queries)
    nodes = {text: key for query in queries for text, key in zip(query.names, query.keys, strict=True)}
    named = [set(read_table(text, catalog).names) for text in texts]
    complete = all(any(set(query.names) <= names for names in named) for query in queries)
    if not complete or len({query.where for query in queries}) != 1:
        raise InvalidParameter("these tables do not tell what is asked.")
    keys = [[nodes[text] for text in over.keys if text in names] for names in named]
    return over, [table_of(queries[0], key, catalog, filtered=True) for key in keys]


def terms_of(plain: Mapping[str, str] | None) -> QueryTerms:
    """Return the terms that a certificate tells, or refuse what are none.

    >>> terms_of({"epsilon": "1/2"}).epsilon
    Fraction(1, 2)
    """
    try:
        return QueryTerms(**{name: Fraction(value) for name, value in (plain or {}).items()})
    except (TypeError, ValueError, ZeroDivisionError):
        raise InvalidParameter("these are no terms on which a query is asked.") from None


def _first(steps: tuple[Step, ...], kind: type[Kept]) -> Kept | None:
    return next((step for step in steps if isinstance(step, kind)), None)
