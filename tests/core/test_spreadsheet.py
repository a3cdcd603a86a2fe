from __future__ import annotations

from pathlib import PurePath

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from incrowd.core.spreadsheet import guard, is_guarded, unguard, unguarded

TEXTS = st.lists(st.one_of(st.none(), st.text(alphabet="'=+-@\t\r\n＝a1é", max_size=5)), max_size=20)


@given(TEXTS)
def test_no_guarded_text_begins_like_a_formula_and_none_is_lost(texts: list[str | None]) -> None:
    plain = pa.array(texts, pa.string())
    behind = guard(plain)
    assert not any(text and text[0] in "=+-@\t\r\n＝" for text in behind.to_pylist())
    assert unguard(behind).to_pylist() == texts


@given(TEXTS)
def test_a_dictionary_stays_one(texts: list[str | None]) -> None:
    coded = guard(pa.array(texts, pa.string())).dictionary_encode()
    found = unguard(coded)
    assert pa.types.is_dictionary(found.type)
    assert found.to_pylist() == texts


def test_only_a_file_whose_name_says_so_is_guarded() -> None:
    names = ("data.spreadsheet.csv", "data.2.spreadsheet.tsv", "data.csv", "spreadsheet.csv", "data.spreadsheet")
    assert [is_guarded(PurePath(name)) for name in names] == [True, True, False, False, False]
    table = pa.table({"ill": ["'=1"], "count": [3]})
    assert unguarded(table, PurePath("data.csv")) is table
    assert unguarded(table, PurePath("data.spreadsheet.csv")).to_pylist() == [{"ill": "=1", "count": 3}]
