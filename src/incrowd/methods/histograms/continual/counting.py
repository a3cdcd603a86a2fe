"""Counting: the rows of one period in all cells, of people who may still be counted; and whom that was."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from incrowd.core.table import Table
from incrowd.engines.people import people_in_cells
from incrowd.errors import InvalidParameter
from incrowd.methods.histograms.continual.running import (
    ConsentAnswers,
    CountablePeople,
    PastPeriod,
    RunningRows,
    Whole,
)
from incrowd.methods.shared.columns import row_limits

if TYPE_CHECKING:
    from incrowd.core.coins import Coins
    from incrowd.methods.histograms.continual.strategies import ContributionPattern
    from incrowd.methods.histograms.shared.partition import BinPartition

_LARGEST_COUNT = 2**40
_NOTHING: Whole = np.zeros(0, np.int64)


def counted_period(
    running: RunningRows, partition: BinPartition, pattern: ContributionPattern, coins: Coins
) -> PastPeriod:
    """Count all cells of the period, of people whom the pattern still admits; nothing was measured yet."""
    if pattern.withdrawals and running.consent is not None:
        return _with_withdrawals(running, partition, pattern, coins, running.consent)
    table, admitted = running.table, running.admitted(pattern)
    if admitted is not None:
        table = Table(table.schema, table.engine.admitted(table.rows, admitted), table.engine)
    counts = table.engine.count(table.rows, partition.cells, *row_limits(table, coins))
    dense = np.minimum(partition.occupied(counts).dense(), _LARGEST_COUNT)
    people = frozenset() if admitted is None else frozenset(admitted.seen)
    return PastPeriod(running.number, running.label, dense, _NOTHING, people, running.mark)


def _with_withdrawals(
    running: RunningRows, partition: BinPartition, pattern: ContributionPattern, coins: Coins, consent: ConsentAnswers
) -> PastPeriod:
    """Count one row of each person, and subtract whoever was counted before and has withdrawn since, once."""
    table, counts = running.table, np.zeros(partition.closed_size("count other columns"), np.int64)
    column = table.schema.unit.column
    if column is None:
        raise InvalidParameter("running counts need the person ID column.")
    admitted = running.admitted(pattern) or CountablePeople(table.schema[column], running.key, frozenset())
    cells, subjects = dict[str, int](), dict[str, tuple[str, str]]()
    for name, places in sorted(_places(table, partition, column).items()):
        if admitted.among([name]):
            chosen = places[int(coins.below(len(places), 1)[0])] if len(places) > 1 else places[0]
            cells[admitted.digest(name)], subjects[admitted.digest(name)] = chosen, consent.linked(name)
            counts[chosen] += 1
    before = {gone for period in running.past for gone in period.withdrawn}
    withdrawn = {
        (period.number, digest): cell
        for period in running.past
        for digest, cell in period.cells.items()
        if (period.number, digest) not in before and not consent.stands(*period.subjects[digest])
    }
    np.subtract.at(counts, np.array(list(withdrawn.values()), np.int64), 1)
    own = running.number, running.label, counts, _NOTHING, frozenset(admitted.seen), running.mark
    return PastPeriod(*own, cells=cells, subjects=subjects, withdrawn=frozenset(withdrawn))


def _places(table: Table, partition: BinPartition, person: str) -> dict[str, list[int]]:
    """Return the cells in which each person has rows, by their places."""
    codes = partition.cells.layout.unpack(np.arange(partition.closed_size("count other columns")))
    classes = [item for recoding in partition.cells.recodings if (item := recoding.classes) is not None]
    texts = [item.labels() for item in classes]
    labels = [text.take(pa.array(own)).to_pylist() for text, own in zip(texts, codes, strict=True)]
    places = {cell: at for at, cell in enumerate(zip(*labels, strict=True))}
    by_person: dict[str, list[int]] = {}
    for cell, people in people_in_cells(table.engine, table.rows, partition.cells, table.schema[person]).people.items():
        for name in people:
            by_person.setdefault(name, []).append(places[cell])
    return {name: sorted(own) for name, own in by_person.items()}
