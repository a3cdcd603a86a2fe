"""Rows of linked tables: which of them take part, and whose they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.unit import ExtraRowsRule
from incrowd.methods.synthesis.linked.method import Linked
from incrowd.methods.synthesis.linked.rows import LevelRows, limited, read_levels
from incrowd.noise.system import SystemCoins
from incrowd.workflows.policy.linked_tables import linked_schema
from tests.linked import Tables, example, hospital, opened

PEOPLE = st.lists(st.integers(-1, 4), max_size=20)


def levels(name: str, tables: Tables) -> dict[str, LevelRows]:
    policy = example(name)
    schema, method = linked_schema(policy), policy.method
    assert isinstance(method, Linked)
    return read_levels(opened(policy, tables), tuple(method.classes(schema).values()), SystemCoins())


def changed(tables: Tables, name: str, **columns: list[Any]) -> Tables:
    table = tables[name]
    values = {column: columns.get(column, table[column].to_pylist()) for column in table.column_names}
    return tables | {name: pa.Table.from_pydict(values, schema=table.schema)}


@settings(max_examples=40, deadline=None)
@given(PEOPLE, st.integers(1, 4), st.sampled_from([None, ExtraRowsRule.DROP]), st.booleans())
def test_everybody_keeps_the_first_rows_or_all_or_none(
    people: list[int], most: int, more: ExtraRowsRule | None, ordered: bool
) -> None:
    person, ranks = np.array(people, np.int64), np.arange(len(people))[::-1] if ordered else None
    kept = limited(person, ranks, most, more, SystemCoins())
    assert kept.tolist() == sorted(set(kept.tolist()))
    for somebody in range(5):
        own = np.flatnonzero(person == somebody)
        mine = [place for place in kept.tolist() if person[place] == somebody]
        if more is not None:
            assert mine == (own.tolist() if len(own) <= most else [])
        elif ordered:
            assert mine == own[-most:].tolist()  # ranks fall from row to row
        else:
            assert len(mine) == min(most, len(own))
    assert not len(kept) or person[kept].min() >= 0


def test_a_random_choice_is_even() -> None:
    """Of four rows two are kept: each in half of 2,000 runs, off by 6 standard deviations at most."""
    times = np.zeros(4)
    for _ in range(2000):
        times[limited(np.zeros(4, np.int64), None, 2, None, SystemCoins())] += 1
    assert np.abs(times - 1000).max() < 6 * np.sqrt(2000 / 4)


def test_rows_are_joined_to_their_parents_in_sequence() -> None:
    tables = hospital(30)
    rows = levels("two levels", tables)
    stays, procedures = rows["stays"], rows["procedures"]
    assert np.array_equal(np.sort(stays.parent), stays.parent)
    assert np.array_equal(procedures.person, stays.person[procedures.parent])
    assert np.bincount(stays.person).max() <= 4
    assert np.bincount(procedures.person).max() <= 6
    wards = {f"p{n}": [] for n in range(30)}  # type: ignore[var-annotated]
    for row in tables["stays"].to_pylist():
        wards[row["patient"]].append((row["day"], row["ward"]))
    for person in range(30):
        expected = ["ABC".index(ward) for _, ward in sorted(wards[f"p{person}"])][:4]
        assert stays.column("ward")[stays.person == person].tolist() == expected


def test_orphans_missing_keys_and_suppressed_rows_take_no_part_nor_do_rows_below_them() -> None:
    tables = hospital(20)
    patients = [*tables["patients"]["patient"].to_pylist()[:-3], None, "p0", "p1"]
    sexes = [*tables["patients"]["sex"].to_pylist()[:-1], None]
    rows = levels("two levels", changed(tables, "patients", patient=patients, sex=sexes))
    assert len(rows["patients"]) == 17  # two are named twice, of whom one row is kept or was whole; three are gone
    wards = ["?", *tables["stays"]["ward"].to_pylist()[1:]]
    owners = [*tables["stays"]["patient"].to_pylist()[:-2], None, "nobody"]
    broken = levels("two levels", changed(tables, "stays", ward=wards, patient=owners))
    whole = levels("two levels", tables)
    assert len(broken["stays"]) <= len(whole["stays"])
    assert not len(broken["procedures"]) or broken["procedures"].parent.max() < len(broken["stays"])


def test_a_row_id_of_two_people_is_joined_within_each_where_the_person_is_known() -> None:
    tables = hospital(6)
    same = changed(tables, "stays", stay=["s"] * tables["stays"].num_rows)
    same = changed(same, "procedures", stay=["s"] * tables["procedures"].num_rows)
    rows = levels("two levels", same)
    assert np.array_equal(rows["procedures"].person, rows["stays"].person[rows["procedures"].parent])


def test_keys_are_compared_as_values_and_not_as_they_are_written() -> None:
    """A key column is read as its declared type: text stays text, numbers are numbers."""
    numbers = [str(n).zfill(3) for n in range(4)]
    tables = changed(hospital(4), "patients", patient=numbers)
    rows = levels(
        "one level", changed(tables, "stays", patient=[n[1:].zfill(3) for n in tables["stays"]["patient"].to_pylist()])
    )
    assert len(rows["stays"]) > 0


def test_empty_tables_have_no_rows() -> None:
    rows = levels("two levels", hospital(0))
    assert [len(level) for level in rows.values()] == [0, 0, 0]
