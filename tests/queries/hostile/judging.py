"""What a question shows in two neighboring worlds, and what is wrong with it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import islice
from typing import cast

import duckdb
import numpy as np
import pyarrow as pa
from sqlglot import exp

from incrowd.engines.sql.duckdb import Warehouse
from incrowd.engines.sql.engine import SampledTable
from incrowd.errors import IncrowdError
from incrowd.noise.system import SystemCoins
from incrowd.queries.combined_measurement import Measured, measure
from incrowd.queries.language.interpretation import interpret
from incrowd.queries.measurement import Measurement
from incrowd.queries.measuring.groups import collect_groups, names_in
from incrowd.queries.query import Query, QueryTerms
from incrowd.workflows.query.request import QueryAnswer, QueryRequest
from incrowd.workflows.query.service import QueryService
from tests.queries.hostile.worlds import CANARIES, Worlds


@dataclass(frozen=True)
class Watched:
    """A warehouse of which is noted what was read, and how long the ledger was when it was read."""

    service: QueryService
    collected: list[pa.Table] = field(default_factory=list)
    entries: list[int] = field(default_factory=list)

    def __getattr__(self, name: str) -> object:
        return getattr(self.service.planner.tables, name)

    def collect_together(self, queries: Sequence[exp.Query], drawn: SampledTable | None = None) -> tuple[pa.Table, ...]:
        self.entries.append(entries(self.service))
        found = self.service.planner.tables.collect_together(queries, drawn)
        self.collected.extend(found)
        return found


@dataclass(frozen=True)
class Seen:
    """What asking a question in one world came to: an answer or an error, what was read, and whether it was paid for.

    `charged` tells whether the ledger grew, `paid_before` whether it had grown before the first row was read.
    """

    answered: QueryAnswer | None = None
    error: Exception | None = None
    collected: tuple[pa.Table, ...] = ()
    charged: bool = False
    paid_before: bool = True

    @property
    def kind(self) -> str:
        return "answered" if self.error is None else f"{type(self.error).__name__}: {self.error}"


def entries(service: QueryService) -> int:
    """Return how many entries the ledger has."""
    return service.budgets.ledger.chain.head().sequence


def planned(service: QueryService, sql: str) -> Measured | Exception:
    """Return how a question is answered, with a delta where groups are not declared; or why it is not."""
    try:
        question = interpret(sql, service.planner.catalog)
        parts = (question,) if isinstance(question, Query) else question.parts
        delta = Fraction(0) if all(part.public_keys for part in parts) else Fraction(1, 10**6)
        return measure(question, service.planner.catalog["people"].unit, QueryTerms(epsilon=Fraction(1), delta=delta))
    except Exception as found:  # noqa: BLE001 - an error of any other kind is what is looked for
        return found


def look(service: QueryService, sql: str, terms: QueryTerms) -> Seen:
    """Ask a question in one world and note everything about it."""
    watched, before = Watched(service), entries(service)
    planner = replace(service.planner, tables=cast("Warehouse", watched))
    answered, error = None, None
    try:
        answered = replace(service, planner=planner).ask(QueryRequest(sql, terms))
    except Exception as found:  # noqa: BLE001 - an error of any other kind is what is looked for
        error = found
    now = entries(service)
    paid_before = all(then > before for then in watched.entries)
    return Seen(answered, error, tuple(watched.collected), now > before, paid_before)


@dataclass(frozen=True)
class Verdict:
    """How a question is treated in neighboring worlds, and what is wrong with that: nothing, if all is well."""

    kind: str
    complaints: tuple[str, ...]


def judged(worlds: Worlds, sql: str) -> Verdict:
    """Ask a question in neighboring worlds and compare all that can be seen.

    One that is not even planned in one world is asked in the other alone.
    """
    plan = planned(worlds.without, sql)
    terms = (not isinstance(plan, Exception) and plan.terms) or QueryTerms(epsilon=Fraction(1))
    here = look(worlds.with_victim, sql, terms)
    there = Seen(error=plan) if isinstance(plan, Exception) else look(worlds.without, sql, terms)
    found = [f"the worlds differ: {here.kind!r}, {there.kind!r}"] if here.kind != there.kind else []
    for seen in (here, there):
        found += _refused(seen, sql) if seen.answered is None else _charged(seen, seen.answered, sql)
    if not isinstance(plan, Exception):
        found += all_moved(plan, here.collected, there.collected)
    return Verdict(there.kind, tuple(found))


def glimpsed(worlds: Worlds, sql: str) -> Verdict:
    """Plan a question, collect what it needs in neighboring worlds and answer it, without a ledger: quicker."""
    plan = planned(worlds.without, sql)
    if isinstance(plan, Exception):
        seen = Seen(error=plan)
        return Verdict(seen.kind, tuple(_refused(seen, sql)))
    both = [
        tuple(map(service.planner.tables.collect, plan.statistics)) for service in (worlds.with_victim, worlds.without)
    ]
    for collected in both:
        plan.answer(collected, SystemCoins())
    return Verdict("answered", tuple(all_moved(plan, *both)))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _refused(seen: Seen, sql: str) -> Iterator[str]:
    told = str(seen.error).casefold()
    if not isinstance(seen.error, IncrowdError):
        yield f"not an error raised on purpose: {type(seen.error).__name__}"
    if any(canary in told and canary not in sql.casefold() for canary in CANARIES):
        yield "the message shows a value"
    if seen.collected or seen.charged:
        yield "it failed after rows were read, or was refused and charged"
    if any(isinstance(cause, duckdb.Error | pa.ArrowException) for cause in _causes(seen.error)):
        yield "what the database said hangs on the error"


def _charged(seen: Seen, answered: QueryAnswer, sql: str) -> Iterator[str]:
    if not answered.repeated and not (seen.charged and answered.cost.epsilon > 0):
        yield "it was answered for nothing"
    if not seen.paid_before:
        yield "rows were read before the charge was written"
    if "canary" in json.dumps(answered.to_json()).casefold() and "canary" not in sql.casefold():
        yield "the answer shows a text that one person has"


def all_moved(measured: Measured, here: Iterable[pa.Table], there: Iterable[pa.Table]) -> Iterator[str]:
    """Compare what was collected for each part of a question in both worlds."""
    both = [iter(here), iter(there)]
    for part in measured.measurements:
        yield from moved(part, *(list(islice(tables, len(part.statistics))) for tables in both))


def moved(measured: Measurement, here: Iterable[pa.Table], there: Iterable[pa.Table]) -> Iterator[str]:
    """Compare what was collected in both worlds: the vectors of sums, then the counts of what is picked."""
    tables = list(zip(here, there, strict=False))[: len(measured.statistics)]
    if any(one.schema != other.schema for one, other in tables):
        yield "what was collected is of another shape"
        return
    if measured.sums.all and tables:
        one, other = tables.pop(0)
        if _norm(measured, one, other) > measured.sums.rows:
            yield "one unit moved the sums further than the noise is made for"
    for one, other in tables:
        counts = [Counter[object]() for _ in range(2)]
        for table, count in zip((one, other), counts, strict=True):
            for row in table.to_pylist():
                count[tuple(value for name, value in row.items() if name != "_number")] += row["_number"]
        change = (counts[0] - counts[1]).total() + (counts[1] - counts[0]).total()
        if change > measured.question.contribution.rows:
            yield "one unit moved the counts of what is picked further than its rows"


def _norm(measured: Measurement, one: pa.Table, other: pa.Table) -> float:
    names = tuple(f"_s{place}" for place in range(len(measured.sums.all)))
    vectors = []
    for table in (one, other):
        groups = collect_groups(measured.question, table, names)
        if not measured.question.public_keys and len(set(names_in(measured.question, table))) < table.num_rows:
            return np.inf
        vectors.append(dict(zip(groups.names, groups.vectors, strict=True)))
    zero = np.zeros(len(names), dtype=np.int64)
    widths = np.array(measured.sums.widths)
    keys = vectors[0].keys() | vectors[1].keys()
    return sum(float((np.abs(vectors[0].get(k, zero) - vectors[1].get(k, zero)) / widths).max()) for k in keys)
