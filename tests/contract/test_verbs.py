"""What every engine must be, on every kind of source: each verb comes to what reading row by row comes to.

Methods see rows through these verbs alone (`test_methods.py` holds them to it), so what holds here for a source holds
for every method on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from incrowd.core.cells import Cells
from incrowd.core.domain import Type
from incrowd.core.schema import Column, Schema
from incrowd.core.table import Engine, Opened
from incrowd.core.unit import ExtraRowsRule, Kind, Unit
from incrowd.engines.local.engine import LOCAL as HERE
from incrowd.engines.settings import open_table
from incrowd.errors import InvalidParameter, SourceInvalid, SourceUnreadable, UnknownColumn
from incrowd.noise.positioned import PositionedSample
from tests.contract import kinds
from tests.contract.adverse import PERSON, ROWS, SCHEMA, TYPES, Met, readable, typed, unreadable, values
from tests.contract.agreed import AgreedCoins
from tests.postgres import schema as postgres_schema
from tests.postgres_tables import load
from tests.tables import as_counter, tally
from tests.texts import broken_texts

POSTGRESQL = pytest.param("postgresql", marks=pytest.mark.postgres)
SPARK = [pytest.param(f"spark-{name}", marks=pytest.mark.spark) for name in kinds.CLUSTER]
SOURCES = [*kinds.LOCAL, POSTGRESQL, *SPARK]
TYPED = ["parquet", "folder", "arrow", "duckdb", POSTGRESQL, SPARK[0]]
"""Kinds that store types of their own, which are then those of a frame."""

NEVER_TWICE_THE_SAME = {"duckdb", "sqlite"}
"""Kinds whose files differ although their rows do not."""

SAMPLE = PositionedSample(Fraction(1, 2), b"positions are keyed by 32 bytes.", b"and so are the ids of the rows..")
KEY = bytes(range(32))
LEVELS: list[dict[str, int]] = [
    {},
    {"zip": 1, "born": 2, "age": 1},
    {"zip": 3, "job": 2, "sex": 1, "pay": 1, "note": 1},
]


@dataclass(frozen=True)
class Place:
    """A kind of source: what opens it, and where its tables are put."""

    kind: str
    engine: Engine
    folder: Path
    server: str | None

    @property
    def on_cluster(self) -> bool:
        """Whether the rows stay elsewhere."""
        return self.kind.startswith("spark-")

    def source(self, table: pa.Table, name: str) -> object:
        """Store a table and return what is opened."""
        if self.server is not None:
            return load(self.server, name, table)
        store = kinds.CLUSTER[self.kind.removeprefix("spark-")] if self.on_cluster else kinds.LOCAL[self.kind]
        (self.folder / name).mkdir()
        return store(table, self.folder / name)

    def opened(self, table: pa.Table, name: str) -> Opened:
        """Store a table and open it."""
        return self.engine.open(self.source(table, name))


@pytest.fixture(scope="module", params=SOURCES)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    kind: str = request.param
    with ExitStack() as stack:
        server = None
        if kind == "postgresql":
            server = stack.enter_context(postgres_schema(request.getfixturevalue("postgres_server")))
        engine = request.getfixturevalue("spark_engine") if kind.startswith("spark-") else HERE
        yield Place(kind, engine, tmp_path_factory.mktemp(kind), server)


@pytest.fixture(scope="module")
def rows(place: Place) -> Opened:
    """The rows that can be read as declared."""
    return place.opened(readable(), "readable")


@pytest.fixture(scope="module")
def odd(place: Place) -> Opened:
    """The rows some of whose values cannot be read."""
    return place.opened(unreadable(), "unreadable")


def brought(rows: Opened, columns: list[str]) -> list[tuple[Any, ...]]:
    """Return rows as batches bring them to this process."""
    found: list[tuple[Any, ...]] = []
    for batch in rows.batches(columns):
        assert batch.schema.names == columns
        found += zip(*(batch.column(name).to_pylist() for name in columns), strict=True)
    return found


def test_a_source_names_its_columns_in_order_and_knows_its_rows_or_says_that_it_does_not(rows: Opened) -> None:
    assert rows.names == tuple(readable().column_names)
    assert rows.rows in {None, ROWS}


def test_batches_bring_the_same_rows_whatever_columns_are_asked_for(place: Place, rows: Opened) -> None:
    if place.on_cluster:
        with pytest.raises(InvalidParameter, match="rows on a cluster stay there"):
            brought(rows, ["zip"])
        return
    for columns in (list(SCHEMA.names), ["note", "age"], ["person"]):
        assert brought(rows, columns) == values(readable().select(columns)), "a row's coin is keyed by its position"
    assert sum(batch.num_rows for batch in rows.batches([])) == ROWS


def test_text_is_read_as_text(place: Place, rows: Opened) -> None:
    texts = (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string()))
    assert set(place.engine.types(rows, ["zip", "age", "note"]).values()) <= set(texts)


@pytest.mark.parametrize("levels", LEVELS, ids=["values", "some classes", "most classes"])
def test_cells_are_counted_as_one_by_one(place: Place, odd: Opened, levels: dict[str, int]) -> None:
    cells = Cells.of(SCHEMA, levels)
    expected = tally(cells, unreadable())
    assert as_counter(place.engine.count(odd, cells)) == expected
    assert max(expected.values()) > 1
    assert len(expected) > 1


@pytest.mark.parametrize("at_least", [1, 2])
def test_a_sample_is_of_the_same_rows_and_small_cells_are_left_out(place: Place, odd: Opened, at_least: int) -> None:
    cells = Cells.of(SCHEMA, LEVELS[1], ["sex", "age", "born"])
    found = as_counter(place.engine.count(odd, cells, SAMPLE, at_least=at_least))
    drawn = tally(cells, unreadable(), SAMPLE.at(0, ROWS).tolist())
    expected = Counter({cell: times for cell, times in drawn.items() if times >= at_least})
    assert found == expected
    assert 1 < len(expected) < len(tally(cells, unreadable()))


WHO = Schema((*SCHEMA.columns[:-1], type(PERSON)("person")))
"""The people as values that can be counted."""


@pytest.mark.parametrize("most", [1, 3])
def test_each_person_keeps_as_many_rows_as_allowed_and_nobody_without_an_id_any(
    place: Place, rows: Opened, most: int
) -> None:
    kept = place.engine.limit(rows, PERSON, most, AgreedCoins(11))
    people = Counter((who,) for who in readable()["person"].to_pylist() if who is not None)
    expected = Counter({who: min(times, most) for who, times in people.items()})
    assert max(people.values()) > most
    assert as_counter(place.engine.count(rows, Cells.of(WHO, {}, ["person"]), kept)) == expected


@pytest.mark.parametrize("beyond", [1, 3])
def test_people_with_more_rows_are_left_out_with_all_of_them(place: Place, rows: Opened, beyond: int) -> None:
    kept = place.engine.exclude(rows, PERSON, beyond, AgreedCoins(11))
    people = Counter((who,) for who in readable()["person"].to_pylist() if who is not None)
    expected = Counter({who: times for who, times in people.items() if times <= beyond})
    cells = Cells.of(WHO, {}, ["person"])
    assert len(expected) < len(people)
    assert as_counter(place.engine.count(rows, cells, kept)) == expected
    assert as_counter(place.engine.count(rows, cells, kept, SAMPLE)) <= expected


def test_a_source_in_which_somebody_has_more_rows_is_refused_where_the_unit_says_so(place: Place, rows: Opened) -> None:
    most = max(Counter(who for who in readable()["person"].to_pylist() if who is not None).values())
    few, enough = (Unit(Kind.PERSON, column="person", max_rows=most - n, more=ExtraRowsRule.REFUSE) for n in (1, 0))
    place.engine.marks(rows, replace(SCHEMA, unit=enough), KEY)
    with pytest.raises(SourceInvalid, match=r"more: refuse; nothing was released and nothing was charged") as refused:
        place.engine.marks(rows, replace(SCHEMA, unit=few), KEY)
    assert all(str(who) not in str(refused.value).split() for who in readable()["person"].to_pylist())


def test_the_rows_a_person_keeps_are_their_own_and_a_sample_is_drawn_of_those(place: Place, rows: Opened) -> None:
    cells, engine = Cells.of(WHO, {}, ["person", "note", "zip"]), place.engine
    kept = engine.limit(rows, PERSON, 2, AgreedCoins(11))
    both = as_counter(engine.count(rows, cells, kept, SAMPLE))
    assert both
    assert both <= as_counter(engine.count(rows, cells, kept)) <= tally(cells, readable())
    assert both <= tally(cells, readable(), SAMPLE.at(0, ROWS).tolist())


def test_a_summary_learns_of_every_row_once(place: Place, rows: Opened) -> None:
    columns = ("note", "person", "pay")
    learned = place.engine.learn(rows, columns, partial(Met, columns))
    assert learned.rows == Counter(values(readable().select(list(columns))))


def test_watched_rows_are_the_same_rows(place: Place, rows: Opened) -> None:
    watched = place.engine.watched(rows, lambda done, _: None)
    assert watched.names == rows.names
    cells = Cells.of(SCHEMA, {}, ["sex", "age"])
    assert as_counter(place.engine.count(watched, cells, SAMPLE)) == as_counter(place.engine.count(rows, cells, SAMPLE))


def test_the_digest_is_the_same_for_the_same_content_alone(place: Place, rows: Opened) -> None:
    table, digest = readable(), place.engine.digest(rows)
    assert len(digest) == 32
    assert place.engine.digest(rows) == digest
    note = table.column_names.index("note")
    others = {
        "shorter": table.slice(1),
        "longer": pa.concat_tables([table, table.slice(0, 1)]),
        "changed": table.set_column(note, "note", pa.array([*table["note"].to_pylist()[1:], None])),
    }
    for name, other in others.items():
        assert place.engine.digest(place.opened(other, name)) != digest, name
    if place.kind not in NEVER_TWICE_THE_SAME:
        assert place.engine.digest(place.opened(table, "again")) == digest


def test_the_same_rows_have_the_same_marks_wherever_they_are(place: Place, rows: Opened) -> None:
    people = replace(SCHEMA, unit=Unit(Kind.PERSON, column=PERSON.name))
    found, expected = place.engine.marks(rows, people, KEY), HERE.marks(HERE.open(readable()), people, KEY)
    assert found.content == expected.content
    assert found.rows.to_bytes() == expected.rows.to_bytes()
    assert found.people is not None
    assert expected.people is not None
    assert found.people.to_bytes() == expected.people.to_bytes()
    order = [*range(ROWS // 2, ROWS), *range(ROWS // 2)]
    assert place.engine.marks(place.opened(readable().take(order), "order"), people, KEY).content == expected.content
    assert place.engine.marks(place.opened(readable().slice(1), "fewer"), people, KEY).content != expected.content


@pytest.mark.parametrize("stored", [pa.int64(), pa.float64()], ids=str)
def test_whole_numbers_and_text_in_their_place_are_the_same(place: Place, stored: pa.DataType) -> None:
    ages = readable()["age"]
    table = pa.table({"age": ages.cast(pa.int64()).cast(stored), "zip": readable()["zip"]})
    cells = Cells.of(SCHEMA, {}, ["age", "zip"])
    counted = place.engine.count(place.opened(table, f"ages-{stored}"), cells)
    assert as_counter(counted) == tally(cells, readable())


@pytest.mark.parametrize("place", TYPED, indirect=True)
def test_stored_types_are_counted_as_those_of_a_frame(place: Place) -> None:
    rows, cells = place.opened(typed(), "typed"), Cells.of(TYPES, {"moment": 1})
    place.engine.marks(rows, TYPES, KEY)
    expected = as_counter(HERE.count(HERE.open(typed()), cells))
    assert as_counter(place.engine.count(rows, cells)) == expected
    assert len(expected) == 4


@pytest.mark.parametrize("place", ["parquet", "folder", "arrow", SPARK[0]], indirect=True)
def test_a_cell_that_is_no_text_counts_as_missing_and_changes_no_other_row(place: Place) -> None:
    table = pa.table({"zip": broken_texts(b"02139", b"\xff\xfe", b"02139"), "age": ["41", "41", "7"]})
    schema = Schema((Column("zip"), Column("age", type=Type.INTEGER)))
    counted = place.engine.count(place.opened(table, "no-text"), Cells.of(schema, {}))
    assert as_counter(counted) == {("02139", "41"): 1, (None, "41"): 1, ("02139", "7"): 1}


def refusal(place: Place, table: pa.Table, name: str) -> tuple[type, str]:
    """Return how a table is refused when it is opened or validated."""

    def read() -> None:
        found = open_table(place.source(table, name), SCHEMA, engine=place.engine)
        found.engine.marks(found.rows, found.schema, KEY)

    with pytest.raises((SourceInvalid, SourceUnreadable, UnknownColumn)) as caught:
        read()
    return type(caught.value), str(caught.value)


def test_values_that_can_be_read_pass(place: Place, rows: Opened) -> None:
    place.engine.marks(rows, SCHEMA, KEY)


def test_values_that_cannot_be_read_are_refused_alike_and_not_shown(place: Place) -> None:
    ages = readable()["age"].to_pylist()
    ages[100], ages[200] = "forty", "-"
    error, said = refusal(place, readable().set_column(1, "age", pa.array(ages)), "forty")
    assert error is SourceInvalid
    assert said.startswith("2 problems in the source; nothing was released and nothing was charged.")
    assert "column age: 2 cells are not whole numbers, in " in said
    assert said.endswith("; expected such as 42")
    assert "forty" not in said


def test_a_column_that_is_not_there_is_refused_alike(place: Place) -> None:
    names = ["ages" if name == "age" else name for name in readable().column_names]
    assert refusal(place, readable().rename_columns(names), "ages") == (
        UnknownColumn,
        "there is no column age. Did you mean ages?",
    )


@pytest.mark.parametrize("place", TYPED, indirect=True)
@pytest.mark.parametrize(
    ("stored", "error", "gist"),
    [
        (pa.array([1.5] * ROWS), SourceInvalid, f"column age: {ROWS} cells are not whole numbers"),
        (pa.array([[1]] * ROWS), SourceUnreadable, "column age is of type"),
    ],
    ids=["numbers that are not whole", "lists"],
)
def test_a_column_of_a_type_that_does_not_fit_is_refused_alike(
    place: Place, stored: pa.Array, error: type, gist: str
) -> None:
    found, said = refusal(place, readable().set_column(1, "age", stored), f"type-{stored.type.id}")
    assert found is error
    assert gist in said
