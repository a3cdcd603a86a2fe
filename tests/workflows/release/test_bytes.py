"""What is suppressed is nowhere in what is published: not in pages, dictionaries, statistics, certificate or report."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from incrowd.workflows.release import perform
from incrowd.workflows.release.deliver import Destination
from incrowd.workflows.release.tables import release_to
from tests.coins import ScriptedCoins
from tests.policies import PEOPLE, changed, people, written

PLANTED = changed(
    PEOPLE,
    columns__zip={"hierarchy": {"prefix": [8]}},
    columns__born={"type": "date", "hierarchy": {"dates": ["month"]}},
    columns__paid={"type": "decimal"},
    columns__id={"role": "identifier"},
    release__levels={"age": 2, "zip": 1},
)
ZSTD = b"\x28\xb5\x2f\xfd"
RARE = ["Xanadu01", "Xanadu02", "1871-03-07", "77123.4375", "Zarathustra"]


def rows_with_rare_ones() -> pa.Table:
    """Two crowds of 300, and rows that are alone with a place, a day and an amount."""
    crowd = [
        {"sex": sex, "age": "40", "zip": "Commontown", "born": "2001-02-03", "paid": "12.5", "id": f"{sex}{n}"}
        for sex in "FM"
        for n in range(300)
    ]
    alone = [
        {"sex": "F", "age": "40", "zip": "Xanadu01", "born": "2001-02-03", "paid": "12.5", "id": "Zarathustra"},
        {"sex": "M", "age": "40", "zip": "Xanadu02", "born": "1871-03-07", "paid": "12.5", "id": "Zarathustra"},
        {"sex": "M", "age": "40", "zip": "Commontown", "born": "1871-03-07", "paid": "77123.4375", "id": "Zarathustra"},
    ]
    mixed = [*crowd, *alone, *alone]
    random.Random(5).shuffle(mixed)
    return pa.Table.from_pylist([*alone, *mixed, *alone])


def spellings(value: str) -> Iterator[bytes]:
    """A value as text, as text of another width, and as the number or day that a file stores."""
    yield from (value.encode(), value.encode("utf-16-le"), value.encode("utf-32-le"))
    for kind in (pa.float64(), pa.date32()):
        try:
            yield pa.array([value]).cast(kind).buffers()[1].to_pybytes()[: kind.bit_width // 8]
        except pa.ArrowInvalid:
            continue


def frame(data: bytes) -> int:
    """The length of the Zstandard frame that data starts with (RFC 8878, 3.1.1): a header, blocks, a checksum."""
    flags = data[4]
    single = flags >> 5 & 1
    end = 5 + (not single) + (0, 1, 2, 4)[flags & 3] + (single, 2, 4, 8)[flags >> 6]
    last = 0
    while not last:
        block = int.from_bytes(data[end : end + 3], "little")
        last = block & 1
        end += 3 + (1 if block >> 1 & 3 == 1 else block >> 3)
    return end + 4 * (flags >> 2 & 1)


def contents(path: Path) -> Iterator[bytes]:
    """The bytes of a file, and of a Parquet file also every page and dictionary, decompressed."""
    raw = path.read_bytes()
    yield raw
    if path.suffix != ".parquet":
        return
    places = [place for place in range(len(raw)) if raw.startswith(ZSTD, place)]
    assert places, "no compressed page was found"
    for place in places:
        with pa.input_stream(pa.py_buffer(raw[place : place + frame(raw[place:])]), compression="zstd") as page:
            yield page.read()
    file = pq.ParquetFile(path, read_dictionary=["sex", "age", "zip"])
    for column in file.read().columns:
        for chunk in column.chunks:
            values = chunk.dictionary if pa.types.is_dictionary(chunk.type) else chunk
            yield repr(values.to_pylist()).encode()
    yield repr(file.metadata.to_dict()).encode()


@pytest.mark.parametrize("form", ["parquet", "csv", "tsv"])
def test_no_suppressed_value_is_anywhere_in_the_published_bytes(tmp_path: Path, form: str) -> None:
    policy = written(PLANTED, tmp_path)
    published = release_to(rows_with_rare_ones(), policy, Destination(tmp_path / "out", form))
    found = [content for path in published.folder.iterdir() for content in contents(path)]
    assert any(b"Commonto" in content for content in found)
    assert any(b"2001-02-03" in content for content in found) or form == "parquet"
    for value in RARE:
        for spelled in spellings(value):
            assert not any(spelled in content for content in found), value


def test_the_search_finds_what_a_careless_writer_leaves_behind(tmp_path: Path) -> None:
    """Arrow keeps the dictionary of rows that were filtered away; written as it is, the page holds it."""
    table = rows_with_rare_ones()
    sloppy = table.set_column(2, "zip", table["zip"].combine_chunks().dictionary_encode())
    sloppy = sloppy.filter(pa.compute.equal(sloppy["zip"].cast(pa.string()), "Commontown"))
    pq.write_table(sloppy, tmp_path / "data.parquet", compression="zstd")
    assert any(b"Xanadu01" in content for content in contents(tmp_path / "data.parquet"))


@pytest.mark.parametrize("form", ["parquet", "csv"])
def test_the_order_of_the_input_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    rows = people(400, seed=11).to_pylist()
    tossed = [(row, random.Random(n).random() < 0.5) for n, row in enumerate(rows)]
    written_bytes = set()
    for order in range(3):
        random.Random(order).shuffle(tossed)
        drawn = [place for place, (_, inside) in enumerate(tossed) if inside]  # the same people in every order
        monkeypatch.setattr(perform, "SystemCoins", partial(ScriptedCoins, drawn))
        folder = tmp_path / f"{order}"
        folder.mkdir()
        table = pa.Table.from_pylist([row for row, _ in tossed])
        published = release_to(table, written(PEOPLE, folder), Destination(folder / "out", form))
        assert len(published.release.result) > 100
        written_bytes.add((folder / "out" / f"data.{form}").read_bytes())
    assert len(written_bytes) == 1
