"""CSV files as they come: any delimiter, any encoding, everything as text, and every fault named by its line."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from incrowd.core.domain import Type
from incrowd.core.table import SourceOptions
from incrowd.engines.readers import delimited
from incrowd.engines.readers.sources import Source, open_source
from incrowd.errors import IncrowdError, InvalidParameter, SourceUnreadable

Row = list[str | None]


def opened(tmp_path: Path, content: bytes | str, **options: object) -> Source:
    path = tmp_path / "data.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return open_source(path, SourceOptions(**options))  # type: ignore[arg-type]  # the tests name options freely


def rows_of(source: Source) -> list[Row]:
    return [list(row.values()) for batch in source.batches(source.names) for row in batch.to_pylist()]


def read(tmp_path: Path, content: bytes | str, **options: object) -> list[Row]:
    return rows_of(opened(tmp_path, content, **options))


def refusal(tmp_path: Path, content: bytes | str, **options: object) -> str:
    with pytest.raises(IncrowdError) as caught:
        read(tmp_path, content, **options)
    assert caught.value.__cause__ is None or isinstance(caught.value.__cause__, IncrowdError)
    assert caught.value.__context__ is None or isinstance(caught.value.__context__, IncrowdError)
    return str(caught.value)


def test_everything_is_text_so_leading_zeros_and_the_word_no_survive(tmp_path: Path) -> None:
    assert read(tmp_path, "zip,country,n\n02134,NO,1e3\n") == [["02134", "NO", "1e3"]]


def test_an_empty_field_is_missing_quoted_or_not(tmp_path: Path) -> None:
    assert read(tmp_path, 'a,b,c\n,"",x\n') == [[None, None, "x"]]


def test_missing_values_are_spelled_as_the_option_says(tmp_path: Path) -> None:
    source = opened(tmp_path, "a,b\nNA,\n-9,x\n", nulls=("NA", "-9"))
    assert rows_of(source) == [[None, ""], [None, "x"]]
    assert source.settings["nulls"] == "'NA', '-9'"


@pytest.mark.parametrize(("mark", "word"), [(",", "comma"), (";", "semicolon"), ("\t", "tab"), ("|", "bar")])
def test_the_delimiter_is_found_and_reported(tmp_path: Path, mark: str, word: str) -> None:
    source = opened(tmp_path, f"a{mark}b\n1{mark}2\n")
    assert rows_of(source) == [["1", "2"]]
    assert source.settings["delimiter"] == mark
    assert any(word in note for note in source.notes)


def test_decimal_commas_do_not_mislead_about_the_delimiter(tmp_path: Path) -> None:
    assert read(tmp_path, "a;b\n1,5;2,5\n3,5;4,5\n") == [["1,5", "2,5"], ["3,5", "4,5"]]


def test_a_delimiter_inside_quotes_does_not_mislead(tmp_path: Path) -> None:
    assert read(tmp_path, 'name|age\n"Doe, J; x",41\n'.replace(",41", "|41")) == [["Doe, J; x", "41"]]


def test_a_told_delimiter_is_not_second_guessed(tmp_path: Path) -> None:
    source = opened(tmp_path, "a;b,c\n1;2,3\n", delimiter=";")
    assert source.names == ("a", "b,c")
    assert source.notes == ()


def test_a_file_ending_in_tsv_is_split_at_tabs_alone(tmp_path: Path) -> None:
    path = tmp_path / "data.tsv"
    path.write_text("a,b\n1,2\n")
    assert open_source(path).names == ("a,b",)


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_accents_survive_every_encoding_that_is_told(tmp_path: Path, encoding: str) -> None:
    content = "prénom,ville\nZoë,Düsseldorf\n".encode(encoding)
    source = opened(tmp_path, content, encoding=encoding)
    assert source.names == ("prénom", "ville")
    assert rows_of(source) == [["Zoë", "Düsseldorf"]]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_tells_the_encoding_and_is_no_part_of_the_first_name(tmp_path: Path, encoding: str) -> None:
    source = opened(tmp_path, "é,b\n1,2\n".encode(encoding))
    assert source.names == ("é", "b")
    assert rows_of(source) == [["1", "2"]]
    assert any("byte-order mark" in note for note in source.notes)


def test_a_byte_order_mark_is_skipped_under_a_told_encoding_too(tmp_path: Path) -> None:
    assert opened(tmp_path, "a,b\n1,2\n".encode("utf-8-sig"), encoding="utf-8").names == ("a", "b")


def test_quoted_line_breaks_delimiters_and_quotes_belong_to_the_cell(tmp_path: Path) -> None:
    assert read(tmp_path, 'a,b\n1,"x\ny, ""z"""\n2,w\n') == [["1", 'x\ny, "z"'], ["2", "w"]]


def test_quotes_can_be_another_character_or_none(tmp_path: Path) -> None:
    assert read(tmp_path, "a,b\n'x,y',\"\n", quote="'") == [["x,y", '"']]
    assert read(tmp_path, 'a,b\n"x,y"\n', quote="") == [['"x', 'y"']]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_all_line_ends_are_understood_with_or_without_the_last(tmp_path: Path, end: str) -> None:
    content = end.join(["a,b", "1,2", "3,4"])
    assert read(tmp_path, content) == read(tmp_path, content + end) == [["1", "2"], ["3", "4"]]


def test_blank_lines_are_no_rows_wherever_they_are(tmp_path: Path) -> None:
    source = opened(tmp_path, "\n\na,b\n\n1,2\n\n\n3,4\n\n")
    assert source.names == ("a", "b")
    assert rows_of(source) == [["1", "2"], ["3", "4"]]


def test_a_header_alone_is_a_table_without_rows(tmp_path: Path) -> None:
    assert read(tmp_path, "a,b") == read(tmp_path, "a,b\n") == []


def test_a_header_may_span_lines(tmp_path: Path) -> None:
    source = opened(tmp_path, '"a\nb",c\n1,2\n')
    assert source.names == ("a\nb", "c")
    assert rows_of(source) == [["1", "2"]]


def test_without_a_header_columns_are_called_by_place_or_as_told(tmp_path: Path) -> None:
    assert opened(tmp_path, "1,2\n", header=False).names == ("column1", "column2")
    source = opened(tmp_path, "1,2\n3,4\n", header=False, names=("x", "y"))
    assert source.names == ("x", "y")
    assert rows_of(source) == [["1", "2"], ["3", "4"]]


def test_names_must_fit_the_file(tmp_path: Path) -> None:
    assert "3 columns" in refusal(tmp_path, "1,2\n", header=False, names=("x", "y", "z"))
    with pytest.raises(InvalidParameter, match="header: false"):
        opened(tmp_path, "1,2\n", names=("x", "y"))


def test_a_column_without_a_name_is_called_by_its_place(tmp_path: Path) -> None:
    assert opened(tmp_path, ",age\n1,41\n").names == ("column1", "age")


def test_compressed_text_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "data.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n01,2\n"))
    source = open_source(path)
    assert rows_of(source) == [["01", "2"]]
    assert source.reader.expected() is None  # type: ignore[attr-defined]  # a reader of lines


def test_ragged_rows_are_named_by_line_blank_and_broken_lines_counted(tmp_path: Path) -> None:
    message = refusal(tmp_path, 'a,b\n1,"x\ny"\n\nsecret\n5,6,7\n')
    assert "line 5: 1 cell where the header has 2" in message
    assert "secret" not in message


def test_a_quote_left_open_in_the_last_column_is_noticed_though_the_rows_below_look_swallowed(tmp_path: Path) -> None:
    assert "line 3: a quote is opened here and never closed" in refusal(tmp_path, 'a,b\n1,2\n3,"secret\n4,5\n6,7\n')


def test_a_quote_left_open_far_from_the_end_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 1 << 14)
    assert "line 2" in refusal(tmp_path, 'a,b\n1,"open\n' + "4,5\n" * 100_000, delimiter=",")


def test_stray_quotes_inside_a_cell_are_plain_characters(tmp_path: Path) -> None:
    assert read(tmp_path, 'a,b\n5" disk,x\n') == [['5" disk', "x"]]


def test_bytes_outside_the_encoding_are_named_by_line_near_the_start(tmp_path: Path) -> None:
    message = refusal(tmp_path, b"a,b\n1,2\nZo\xeb,3\n")
    assert "line 3: not valid utf-8" in message
    assert "encoding: cp1252" in message


def test_bytes_outside_the_encoding_are_named_by_line_far_from_the_start(tmp_path: Path) -> None:
    assert "line 100002: not valid utf-8" in refusal(tmp_path, b"a,b\n" + b"1,2\n" * 100_000 + b"Zo\xeb,3\n")


def test_bytes_outside_another_encoding_are_named_too(tmp_path: Path) -> None:
    content = b"a,b\n" + b"1,2\n" * 100_000 + b"Zo\x81,3\n"
    assert "line 100002: not valid cp1252" in refusal(tmp_path, content, encoding="cp1252")


def test_two_byte_text_without_a_mark_is_recognized_as_such(tmp_path: Path) -> None:
    assert "encoding: utf-16" in refusal(tmp_path, "a,é\n1,2\n".encode("utf-16-le"))


@pytest.mark.parametrize("content", [b"", b"\n\n\r\n", b"\xef\xbb\xbf"])
def test_an_empty_file_is_refused(tmp_path: Path, content: bytes) -> None:
    assert "the file is empty" in refusal(tmp_path, content)


def test_equal_names_are_refused_by_place_not_by_name(tmp_path: Path) -> None:
    message = refusal(tmp_path, "Miller,1,Miller\n")
    assert "columns 1 and 3 have the same name" in message
    assert "Miller" not in message


@pytest.mark.parametrize(
    "options",
    [
        {"delimiter": ",,"},
        {"delimiter": "\n"},
        {"delimiter": "é"},
        {"encoding": "klingon"},
        {"encoding": "base64"},
        {"quote": "''"},
        {"quote": ",", "delimiter": ","},
    ],
)
def test_options_that_mean_nothing_are_refused(tmp_path: Path, options: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter):
        opened(tmp_path, "a,b\n1,2\n", **options)


def test_asking_for_no_columns_still_counts_the_rows(tmp_path: Path) -> None:
    source = opened(tmp_path, "a,b\n1,2\n3,4\n")
    assert [(batch.num_rows, batch.num_columns) for batch in source.batches([])] == [(2, 0)]


def test_columns_come_in_the_order_asked_for_again_and_again(tmp_path: Path) -> None:
    source = opened(tmp_path, "a,b,c\n1,2,3\n")
    for _ in range(2):
        assert [batch.to_pylist() for batch in source.batches(["c", "a"])] == [[{"c": "3", "a": "1"}]]


def test_blocks_do_not_change_rows_or_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = "a,b\n" + "".join(f'{i},"x\n{i}"\n\n' for i in range(500))
    source = opened(tmp_path, content)
    whole = rows_of(source)
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 64)
    assert rows_of(source) == whole
    assert len(list(source.batches(["a"]))) > 10
    assert source.reader.lines([0, 1, 499]) == (2, 5, 1499)  # type: ignore[attr-defined]  # a reader of lines


def test_the_number_of_rows_is_guessed_well_enough_for_a_progress_bar(tmp_path: Path) -> None:
    source = opened(tmp_path, "a,b\n" + "12,34\n" * 5000)
    guess = source.reader.expected()  # type: ignore[attr-defined]  # a reader of lines
    assert 4500 < guess < 5500


HEALTH = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
CELL = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\x03"), max_size=6)
TABLES = st.integers(1, 4).flatmap(lambda width: st.lists(st.lists(CELL, min_size=width, max_size=width), max_size=8))


@settings(max_examples=150, suppress_health_check=HEALTH, deadline=None)
@given(table=TABLES, delimiter=st.sampled_from(",;\t|"), encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]))
def test_what_the_standard_library_writes_is_read_back(
    tmp_path: Path, table: list[list[str]], delimiter: str, encoding: str
) -> None:
    width = len(table[0]) if table else 2
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=delimiter, quoting=csv.QUOTE_ALL)
    writer.writerows([[f"c{i}" for i in range(width)], *table])
    source = opened(tmp_path, text.getvalue().encode(encoding), delimiter=delimiter, encoding=encoding)
    assert rows_of(source) == [[cell or None for cell in row] for row in table]
    assert list(source.reader.problems()) == []  # type: ignore[attr-defined]  # a reader of lines


@settings(max_examples=150, suppress_health_check=HEALTH, deadline=None)
@given(body=st.text(alphabet='ab,"\n\r', max_size=30))
def test_the_fast_reader_and_the_slow_one_agree_on_any_text(tmp_path: Path, body: str) -> None:
    source = opened(tmp_path, "x,y\n" + body, delimiter=",")
    slow = list(source.reader._records())[:-1]  # type: ignore[attr-defined]  # the oracle
    try:
        fast = rows_of(source)
    except SourceUnreadable:
        assert list(source.reader.problems())  # type: ignore[attr-defined]  # a reader of lines
    else:
        assert fast == [[cell or None for cell in record] for _, record in slow]


def test_a_row_that_is_too_long_is_no_open_quote(tmp_path: Path) -> None:
    long = "x" * 20_000_000
    output = refusal(tmp_path, f"a,b\n1,2\n3,{long}\n5,6\n")
    assert "line 3: a row of more than 8,388,608 characters" in output
    assert "quote" not in output


def test_a_long_cell_does_not_hide_what_is_wrong_further_down(tmp_path: Path) -> None:
    output = refusal(tmp_path, f"a,b\n1,2\n3,{'x' * 200_000}\n4\n")
    assert "line 4: 1 cell where the header has 2" in output


def test_a_first_line_without_an_end_is_no_open_quote(tmp_path: Path) -> None:
    output = refusal(tmp_path, "x" * 300_000)
    assert "the first line is longer than 262144 bytes" in output
    assert "quote" not in output


@pytest.mark.parametrize(
    ("content", "options"),
    [
        ("zip,age\n021,7\n\n945,\nNA,x\n", {}),
        ("zip\n" + "\n".join(f"{number % 7:03d}" for number in range(90)) + "\nsum\n", {"totals": ("sum",)}),
        ("fee;day\n0,5;1.2.2020\n1.000;3.4.2020\n", {"decimal": ",", "types": {"fee": Type.DECIMAL}}),
        ('a,b\n"x\ny",1\n"q""r",2\n', {}),
    ],
)
def test_cells_read_as_dictionaries_are_the_same_cells(
    content: str, options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for block in (delimited.BLOCK_BYTES, 48):
        monkeypatch.setattr(delimited, "BLOCK_BYTES", block)
        source = opened(tmp_path, content, **options)
        coded = list(source.coded_batches(source.names))
        assert [list(row.values()) for batch in coded for row in batch.to_pylist()] == rows_of(source)
        for column in (column for batch in coded for column in batch.columns):
            if pa.types.is_dictionary(column.type):
                assert set(column.dictionary.to_pylist()) == set(column.to_pylist()) - {None}, "and no other value"
