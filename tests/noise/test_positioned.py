"""Secret samples: the same coin for the same row, whatever is read around it."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.errors import InvalidParameter
from incrowd.noise.positioned import PositionedSample

POSITION_KEY, ID_KEY = bytes(range(32)), bytes(range(32, 64))
SAMPLE = PositionedSample(Fraction(3, 10), POSITION_KEY, ID_KEY)


def position_word(position: int) -> int:
    block = Cipher(algorithms.AES(POSITION_KEY), modes.ECB()).encryptor().update((position // 2).to_bytes(16, "big"))
    return int.from_bytes(block[8 * (position % 2) :][:8], "little")


def id_word(low: int, high: int = 0) -> int:
    plain = low.to_bytes(8, "little") + high.to_bytes(8, "little")
    return int.from_bytes(Cipher(algorithms.AES(ID_KEY), modes.ECB()).encryptor().update(plain)[:8], "little")


@pytest.mark.parametrize("position", [0, 1, 2, 12345, 2**40 + 1, 2**62])
def test_a_position_has_its_word_of_the_key_stream_compared_exactly(position: int) -> None:
    word = position_word(position)
    for limit, member in ((word, False), (word + 1, True)):
        sample = PositionedSample(Fraction(limit, 2**64), POSITION_KEY, ID_KEY)
        assert sample.at(position, position + 1).tolist() == [member]


@pytest.mark.parametrize("row", [0, 1, 2**64 - 1])
def test_an_id_has_one_block_compared_exactly(row: int) -> None:
    for limit, member in ((id_word(row), False), (id_word(row) + 1, True)):
        sample = PositionedSample(Fraction(limit, 2**64), POSITION_KEY, ID_KEY)
        assert sample.of(np.array([row], dtype=np.uint64)).tolist() == [member]


def test_an_id_of_128_bits_has_one_block_too() -> None:
    word = id_word(5, 2**63 + 1)
    ids = np.array([[5, 2**63 + 1]], dtype=np.uint64)
    assert not PositionedSample(Fraction(word, 2**64), POSITION_KEY, ID_KEY).of(ids)[0]
    assert PositionedSample(Fraction(word + 1, 2**64), POSITION_KEY, ID_KEY).of(ids)[0]


@settings(max_examples=50)
@given(st.integers(0, 50_000), st.lists(st.integers(0, 20_000), max_size=5))
def test_coins_do_not_depend_on_how_rows_come_in_batches(start: int, lengths: list[int]) -> None:
    whole = SAMPLE.at(0, start + sum(lengths))
    for length in lengths:
        assert (SAMPLE.at(start, start + length) == whole[start : start + length]).all()
        start += length


@given(st.lists(st.integers(0, 2**64 - 1), max_size=30), st.randoms())
def test_the_coin_of_an_id_does_not_depend_on_its_neighbors(rows: list[int], order: object) -> None:
    ids = np.array(rows, dtype=np.uint64)
    coins = dict(zip(rows, SAMPLE.of(ids).tolist(), strict=True))
    shuffled = sorted(rows, key=lambda row: row * 2654435761 % 2**32)
    assert SAMPLE.of(np.array(shuffled, dtype=np.uint64)).tolist() == [coins[row] for row in shuffled]


def test_ids_that_fill_several_chunks_are_all_decided() -> None:
    ids = np.arange(40_000, dtype=np.uint64)
    whole = SAMPLE.of(ids)
    assert (whole[30_000:] == SAMPLE.of(ids[30_000:])).all()


def test_positions_and_ids_have_nothing_in_common() -> None:
    one = SAMPLE.at(0, 2000)
    other = SAMPLE.of(np.arange(2000, dtype=np.uint64))
    assert 0.45 < float((one == other).mean()) < 0.71  # 0.58 if independent


def test_two_samples_have_different_coins() -> None:
    one, other = PositionedSample.fresh(Fraction(1, 2)), PositionedSample.fresh(Fraction(1, 2))
    assert (one.at(0, 300) != other.at(0, 300)).any()


def test_the_keys_are_never_shown() -> None:
    for text in (repr(SAMPLE), str(SAMPLE), f"{SAMPLE}"):
        assert text == "PositionedSample(rate=Fraction(3, 10))"


def test_workers_get_the_same_coins_through_pickle() -> None:
    copy = pickle.loads(pickle.dumps(SAMPLE))
    assert (copy.at(7, 999) == SAMPLE.at(7, 999)).all()


@pytest.mark.parametrize("rate", [Fraction(-1, 2), Fraction(0), Fraction(1), Fraction(3, 2), Fraction(1, 2**65)])
def test_rates_that_sample_nobody_or_everybody_are_refused(rate: Fraction) -> None:
    with pytest.raises(InvalidParameter):
        PositionedSample.fresh(rate)


def test_the_lowest_and_highest_rates_work() -> None:
    assert not PositionedSample.fresh(Fraction(1, 2**64)).at(0, 1000).any()
    assert PositionedSample.fresh(1 - Fraction(1, 2**70)).at(0, 1000).all()


@pytest.mark.parametrize(("start", "stop"), [(-1, 5), (5, 4), (0, 2**63 + 1)])
def test_ranges_that_are_none_are_refused(start: int, stop: int) -> None:
    with pytest.raises(InvalidParameter):
        SAMPLE.at(start, stop)


def test_an_empty_range_has_no_coins() -> None:
    assert SAMPLE.at(3, 3).size == 0
    assert SAMPLE.of(np.empty(0, dtype=np.uint64)).size == 0


@pytest.mark.parametrize("ids", [np.array([1, 2]), np.array([1.0]), np.zeros((2, 3), dtype=np.uint64)])
def test_ids_of_another_type_are_refused(ids: np.ndarray) -> None:
    with pytest.raises(InvalidParameter):
        SAMPLE.of(ids)
