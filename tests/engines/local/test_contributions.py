from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.domain import Type
from incrowd.core.schema import Column, Role
from incrowd.engines.local.contributions import crowded, exclude, limit
from incrowd.errors import InvalidParameter, SourceChanged
from tests.coins import ScriptedCoins
from tests.tables import Batches

PERSON = Column("id", Role.IDENTIFIER)


def least(people: list[str | None], coins: list[int], at_most: int) -> list[bool]:
    """Of each person's rows those with the least coins, person by person."""
    rows: dict[str, list[tuple[int, int]]] = defaultdict(list)
    sample = iter(coins)
    for position, person in enumerate(people):
        if person is not None:
            rows[person].append((next(sample), position))
    retained = {position for mine in rows.values() for _, position in sorted(mine)[:at_most]}
    return [position in retained for position in range(len(people))]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.none() | st.sampled_from("abc"), max_size=20), st.integers(1, 3), st.integers(1, 9), st.data())
def test_each_person_keeps_the_rows_with_the_least_coins(
    people: list[str | None], at_most: int, size: int, data: st.DataObject
) -> None:
    valid = len(people) - people.count(None)
    coins = data.draw(st.lists(st.integers(0, 2**62 - 1), min_size=valid, max_size=valid))
    table = pa.table({"id": pa.array(people, pa.string())})
    retained = limit(Batches(table, size), PERSON, at_most, ScriptedCoins(below=coins))
    assert retained.mask.tolist() == least(people, coins, at_most)


def test_every_row_of_a_person_is_as_likely_to_stay() -> None:
    table = pa.table({"id": ["a", "b", "a", "a"]})
    stayed = Counter(
        tuple(np.flatnonzero(limit(Batches(table), PERSON, 1, ScriptedCoins(below=coins)).mask).tolist())
        for coins in permutations(range(4))
    )
    assert stayed == {(0, 1): 8, (1, 2): 8, (1, 3): 8}


def test_what_others_do_makes_no_difference_to_a_person() -> None:
    mine = limit(Batches(pa.table({"id": ["a", "a", "a"]})), PERSON, 2, ScriptedCoins(below=[5, 1, 3]))
    crowd = pa.table({"id": ["a", "b", "a", "b", "c", "a"]})
    ours = limit(Batches(crowd), PERSON, 2, ScriptedCoins(below=[5, 0, 1, 9, 2, 3]))
    assert ours.mask[[0, 2, 5]].tolist() == mine.mask.tolist()


@pytest.mark.parametrize(
    ("array", "kind", "people"),
    [
        (pa.array([1, 1, 2, None]), Type.INTEGER, [0, 0, 1, None]),
        (pa.array([1.0, 1.0, float("nan"), 2.0]), Type.INTEGER, [0, 0, None, 1]),
        (pa.array(["1", "01", "x", "1.0"]), Type.INTEGER, [0, 0, None, 0]),
        (pa.array(["1", "01", "x", "1.0"]), Type.TEXT, [0, 1, 2, 3]),
        (pa.array(["a", None, "a", "b"]).dictionary_encode(), Type.TEXT, [0, None, 0, 1]),
        (pa.array([2**60, 2**60 + 1, 2**60, 2**60 + 1]), Type.INTEGER, [0, 1, 0, 1]),
        (pa.array([2**60, 2**60 + 1, 2**60, 2**60 + 1]), Type.TEXT, [0, 1, 0, 1]),
        (pa.array(["", "", "é", "e\u0301"]), Type.TEXT, [0, 0, 1, 2]),
    ],
)
def test_people_are_told_apart_by_the_exact_value(array: pa.Array, kind: Type, people: list[int | None]) -> None:
    column = Column("id", Role.IDENTIFIER, kind)
    coins = list(range(sum(person is not None for person in people)))
    retained = limit(Batches(pa.table({"id": array})), column, 1, ScriptedCoins(below=coins))
    assert retained.mask.tolist() == least([None if p is None else str(p) for p in people], coins, 1)


def test_nobody_keeps_nothing() -> None:
    empty = pa.table({"id": pa.array([], pa.string())})
    assert limit(Batches(empty), PERSON, 1, ScriptedCoins()).mask.tolist() == []
    nobody = pa.table({"id": pa.array([None, None], pa.string())})
    assert limit(Batches(nobody), PERSON, 1, ScriptedCoins()).mask.tolist() == [False, False]
    with pytest.raises(InvalidParameter, match="at least one row"):
        limit(Batches(empty), PERSON, 0, ScriptedCoins())


CHANGED = SourceChanged("the rows changed while they were in use.")


@dataclass(frozen=True)
class Broken(Batches):
    """Rows that cannot be read to their end."""

    error: BaseException = CHANGED

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        yield from super().batches(columns)
        raise self.error


def test_rows_that_fail_while_people_are_told_apart_say_so_in_their_own_words() -> None:
    table = pa.table({"id": ["a", "b"]})
    with pytest.raises(SourceChanged, match="the rows changed while they were in use") as caught:
        limit(Broken(table), PERSON, 1, ScriptedCoins(below=[1, 2]))
    assert caught.value.__cause__ is None


def test_ctrl_c_while_people_are_told_apart_stays_what_it_is() -> None:
    table = pa.table({"id": ["a", "b"]})
    with pytest.raises(KeyboardInterrupt):
        limit(Broken(table, error=KeyboardInterrupt()), PERSON, 1, ScriptedCoins(below=[1, 2]))


@settings(deadline=None, max_examples=50)
@given(st.lists(st.none() | st.sampled_from("abc"), max_size=20), st.integers(1, 3), st.integers(1, 9))
def test_people_with_more_rows_are_left_out_with_all_of_them(people: list[str | None], beyond: int, size: int) -> None:
    table, owned = pa.table({"id": pa.array(people, pa.string())}), Counter(people)
    retained = exclude(Batches(table, size), PERSON, beyond)
    assert retained.mask.tolist() == [who is not None and owned[who] <= beyond for who in people]
    assert crowded(Batches(table, size), PERSON, beyond) == sum(
        rows > beyond for who, rows in owned.items() if who is not None
    )


def test_somebody_without_rows_cannot_be_asked_for() -> None:
    with pytest.raises(InvalidParameter, match="beyond must be 1 or more"):
        exclude(Batches(pa.table({"id": ["a"]})), PERSON, 0)
