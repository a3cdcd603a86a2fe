from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incrowd.engines.local.contributions import RowLimit
from incrowd.engines.spark.places import FilePieces, Piece, Positions, fresh_key, ids_of, ranks, read_in_full
from incrowd.errors import InvalidParameter, SourceChanged, SourceInvalid, SourceUnreadable
from incrowd.noise.positioned import PositionedSample
from incrowd.noise.system import SystemCoins


@given(st.lists(st.integers(0, 10_000), max_size=200))
def test_a_row_meets_its_own_coin_in_whatever_company(numbers: list[int]) -> None:
    sample = PositionedSample(Fraction(1, 3), bytes(32), bytes([1]) * 32)
    whole = sample.at(0, 10_001)
    assert Positions(np.array(numbers, np.int64)).chosen(sample).tolist() == [bool(whole[n]) for n in numbers]


def test_a_choice_that_ends_before_the_rows_do_is_refused() -> None:
    with pytest.raises(SourceChanged):
        Positions(np.arange(5)).chosen(RowLimit(np.ones(3, np.bool_)))


def test_rows_told_by_an_id_cannot_be_chosen_by_position() -> None:
    with pytest.raises(InvalidParameter, match="no positions"):
        ids_of(pa.array([1, 2])).chosen(RowLimit(np.ones(2, np.bool_)))


def test_ids_of_text_are_hashed_and_never_missing() -> None:
    words = ids_of(pa.array([f"visit {n}" for n in range(1000)])).words
    assert len({tuple(word) for word in words.tolist()}) == 1000
    with pytest.raises(SourceInvalid, match="without an id"):
        ids_of(pa.array(["a", None]))


def test_ranks_are_distinct_and_hang_on_the_key() -> None:
    places = Positions(np.arange(10_000))
    one, other = (ranks(fresh_key(SystemCoins()), places).to_pylist() for _ in range(2))
    assert len(set(one)) == 10_000
    assert not set(one) & set(other)


def test_positions_follow_the_names_of_the_files() -> None:
    files = [Piece(3, "file:/d/part%2010.parquet", 4), Piece(9, "file:/d/part%202.parquet", 2)]
    files.append(Piece(5, "file:/d/a/part.parquet", 3))
    pieces = FilePieces.of(files)
    assert [piece.stamp for piece in pieces.files] == [5, 3, 9]
    assert pieces.positions(np.array([9, 5, 5, 3]), np.array([1, 0, 2, 0])).tolist() == [8, 0, 2, 3]
    assert pieces.rows == 9


@pytest.mark.parametrize(("stamp", "row"), [(4, 0), (3, 4)])
def test_a_file_that_is_not_as_it_was_is_refused(stamp: int, row: int) -> None:
    pieces = FilePieces.of([Piece(3, "file:/d/a.parquet", 4)])
    with pytest.raises(SourceChanged, match="changed while it was in use"):
        pieces.positions(np.array([stamp]), np.array([row]))


def test_a_pass_over_more_or_fewer_rows_is_refused() -> None:
    pieces = FilePieces.of([Piece(3, "file:/d/a.parquet", 4)])
    read_in_full(pieces, 4)
    for rows in (3, 5):
        with pytest.raises(SourceChanged):
            read_in_full(pieces, rows)


def test_files_that_cannot_be_told_apart_are_refused() -> None:
    with pytest.raises(SourceUnreadable, match="the same stamp"):
        FilePieces.of([Piece(3, "file:/d/a.parquet", 4), Piece(3, "file:/d/b.parquet", 4)])
