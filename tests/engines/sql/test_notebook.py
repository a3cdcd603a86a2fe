"""DuckDB in notebooks: without ipywidgets, changing its progress bar is an error, so an absent one is left alone."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import duckdb
import pytest

from incrowd.engines.sql.duckdb import _confine
from incrowd.engines.sql.engine import Limits


class Notebook:
    """A database that refuses to change its progress bar, as in a notebook without ipywidgets."""

    def __init__(self, base: duckdb.DuckDBPyConnection, *, bar: bool) -> None:
        self.base, self.bar, self.settings = base, bar, list[str]()

    def execute(self, statement: str, values: list[Any] | None = None) -> Any:
        if "current_setting" in statement:
            return self.base.execute("SELECT ?", [self.bar])
        self.settings.append(statement)
        if "progress_bar" in statement and not self.bar:
            raise duckdb.InvalidInputException("required package 'ipywidgets' is missing")
        return self.base.execute(statement, values)


@pytest.mark.parametrize("bar", [False, True])
def test_a_progress_bar_is_turned_off_only_where_there_is_one(bar: bool) -> None:
    with closing(duckdb.connect()) as base:
        notebook: Any = Notebook(base, bar=bar)
        _confine(notebook, [], Limits())
        assert any("enable_progress_bar" in statement for statement in notebook.settings) is bar
        with pytest.raises(duckdb.Error, match="locked"):
            base.execute("SET threads = 1")
