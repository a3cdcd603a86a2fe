"""Regular expressions without an engine: the same texts match as with one, tried on all short texts."""

from __future__ import annotations

import itertools
import re

import duckdb
import pytest

from incrowd.queries.language.understanding import understand
from tests.queries.language.hospital import CATALOG

TEXTS = ["".join(each) for many in range(5) for each in itertools.product("ab1_", repeat=many)]
PATTERNS = (
    "a", "^a", "a$", "^a$", "ab|1", "^ab|b1$", "a.b", "^a.b", "a.*b", "^a.*b$", ".*a", "^.*a", "a.+", "^[ab]",
    "^[ab][01]", r"^\d", r"^\w\w$", "^a{2}", "^[a-b]{2}1", "^(a|b)1", "(a|1)b", "^.b", "^a_", r"a\.b|b", "^[b1]{2}$",
    "^a.*", "..",
    ".",
)  # fmt: skip


@pytest.mark.parametrize("name", ["REGEXP_MATCHES", "REGEXP_FULL_MATCH"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_same_texts_match(pattern: str, name: str) -> None:
    question = understand(f"SELECT {name}(note, '{pattern}') AS k, COUNT(*) FROM rows GROUP BY k", CATALOG)
    condition = question.rows.expressions[0].this.sql("duckdb").replace('"t1"."note"', "note")
    asked = duckdb.execute(f"SELECT note FROM (SELECT UNNEST(?) AS note) WHERE {condition}", [TEXTS]).fetchall()
    match = re.search if name == "REGEXP_MATCHES" else re.fullmatch
    assert {note for (note,) in asked} == {text for text in TEXTS if match(pattern, text)}
