"""With and without the compiled parser of the extra `fast`, every text is understood as the same, or refused alike."""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest
import sqlglot.parser

from incrowd.errors import InvalidParameter, QueryRefused
from incrowd.queries.combined_measurement import measure
from incrowd.queries.language.interpretation import interpret
from incrowd.queries.query import QueryTerms
from tests.queries.analysts.trades import STATEMENTS, TRADES

ROOT = Path(__file__).parents[3]
TERMS = QueryTerms(epsilon=Fraction(1), delta=Fraction(1, 10**6))
ODD = (
    "SELECT", "SELECT COUNT(", "SELECT COUNT(*) FROM", "SELECT CAST(x AS", "SELECT x[", "SELECT CASE WHEN",
    "SELECT " + "INTERVAL " * 500 + "1", "SELECT x" + "[1]" * 900, "SELECT CAST(x AS " + "ARRAY<" * 900,
    "SELECT 1 FROM " + "t JOIN " * 900 + "t", "SELECT " + "a." * 900 + "b", "SELECT " + "x = " * 900 + "1",
)  # fmt: skip
"""Texts that end too early, and those that never seem to end."""
INTERPRETED = """
import sys
from importlib.machinery import FileFinder, SourceFileLoader


class Interpreted:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] == "sqlglot":
            found = (FileFinder(each, (SourceFileLoader, [".py"])).find_spec(name) for each in path or sys.path)
            return next((spec for spec in found if spec is not None), None)


sys.meta_path.insert(0, Interpreted)
from tests.queries.analysts.test_parsers import told

print(told())
"""


def _told(sql: str) -> list[str]:
    try:
        measured = measure(interpret(sql, TRADES), TRADES.relations[0].unit, TERMS)
        return [query.sql("duckdb") for query in measured.statistics]
    except (QueryRefused, InvalidParameter) as refusal:
        return ["refused", *([] if sql in ODD else [str(refusal)])]  # which limit is met first may differ


def told() -> str:
    """Return what is made of every text, and by which parser."""
    return json.dumps([sqlglot.parser.__file__, {sql: _told(sql) for sql in (*STATEMENTS, *ODD)}])


def test_the_compiled_parser_and_the_interpreted_one_understand_the_same() -> None:
    compiled, ours = json.loads(told())
    if compiled.endswith(".py"):
        pytest.skip("the parser is not compiled here: pip install 'incrowd[fast]'")
    run = subprocess.run([sys.executable, "-c", INTERPRETED], capture_output=True, text=True, cwd=ROOT, check=True)
    interpreted, theirs = json.loads(run.stdout)
    assert interpreted.endswith(".py")
    assert {sql: (ours[sql], theirs[sql]) for sql in ours if ours[sql] != theirs[sql]} == {}
