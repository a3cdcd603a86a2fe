from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.core.domain import Categories, Numbers, Provenance, Text
from incrowd.core.hierarchy.intervals import Intervals
from incrowd.core.hierarchy.text import Prefix, Redaction
from incrowd.core.hierarchy.tree import ArxStyle, ArxTable, parse_arx, table_of
from incrowd.errors import InvalidParameter


@pytest.mark.parametrize(
    "text",
    [
        "Male;*\nFemale;*\n",
        "Male;*\nFemale;*",
        "1;0-4;0-9;*\r\n2;0-4;0-9;*\r\n",
        "1;0-4\r\n2;0-4",
        '"a;b";x;*\n"say ""hi""";x;*\n',
        '"a";"x"\n"b";"x"\n',
        "\ufeffä;ö\nü;ö\n",
        " lead; trail \n",
        ";empty\nb;empty\n",
        "single\n",
    ],
)
def test_a_file_that_is_read_and_written_again_stays_the_same_bytes(text: str) -> None:
    assert parse_arx(text).text().encode() == text.encode()


_FIELD = st.text(st.characters(exclude_characters="\r\x00", exclude_categories=["Cs"]), max_size=6)


@settings(deadline=None)
@given(st.lists(st.tuples(_FIELD, _FIELD), min_size=1), st.sampled_from(";,\t"), st.booleans(), st.booleans())
def test_what_is_written_is_read_back(rows: list[tuple[str, str]], delimiter: str, ends: bool, quoted: bool) -> None:
    style = ArxStyle(delimiter, ends_with_newline=ends, all_quoted=quoted)
    text = ArxTable(tuple(rows), style).text()
    if text.startswith("\ufeff"):
        return
    assert parse_arx(text, delimiter).rows == tuple(rows)
    assert parse_arx(text, delimiter).text() == text


def test_a_hierarchy_survives_the_way_to_arx_and_back() -> None:
    zips = Redaction(Categories(("02139", "02138", "94305")), 5)
    back = parse_arx(table_of(zips).text()).hierarchy()
    assert back.height == zips.height
    assert [back.labels(level) for level in range(6)] == [zips.labels(level) for level in range(6)]


def test_every_line_starts_with_the_value() -> None:
    assert table_of(Intervals(Numbers(1, 3), (2,))).text() == "1;[1, 3);*\n2;[1, 3);*\n3;[3, 5);*\n"


def test_what_cannot_be_listed_cannot_be_written() -> None:
    with pytest.raises(InvalidParameter, match="declare categories or bounds"):
        table_of(Prefix(Text(), (3,)))


def test_the_wrong_delimiter_is_noticed() -> None:
    with pytest.raises(InvalidParameter, match="all contain a comma"):
        parse_arx("1,low\n2,low\n")
    with pytest.raises(InvalidParameter, match="is empty"):
        parse_arx("\n\n")
    with pytest.raises(InvalidParameter, match="not a table"):
        parse_arx('"open;*\n')


def test_blank_lines_say_nothing() -> None:
    assert parse_arx("a;x\n\nb;x\n\n").rows == (("a", "x"), ("b", "x"))


def test_the_provenance_of_a_file_stays_with_its_hierarchy() -> None:
    drafted = Provenance(derived=True)
    assert parse_arx("a;x\n").hierarchy(drafted).provenance == drafted
    assert parse_arx("a;x\n").hierarchy(drafted).domain.provenance == drafted
