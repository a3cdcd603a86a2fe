"""The recount of what was written, by both of its routes."""

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.engines.local import smallest_class as module
from incrowd.engines.local.smallest_class import smallest_class
from incrowd.engines.writers.sinks import write_table

texts = st.one_of(st.none(), st.sampled_from(["a", "b", "c,d", 'quote"d', "line\nbreak", "ä", "NULL", "01"]))
rows = st.lists(st.tuples(texts, st.integers(0, 3)), max_size=40)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("written")


@settings(max_examples=40, deadline=None)
@given(rows=rows, form=st.sampled_from(["parquet", "csv", "tsv"]), small=st.booleans())
def test_both_routes_count_what_was_written(
    folder: Path, rows: list[tuple[str | None, int]], form: str, small: bool
) -> None:
    table = pa.table(
        {"name": pa.array([name for name, _ in rows], pa.string()), "n": pa.array([n for _, n in rows], pa.int64())}
    )
    path = folder / f"data.{form}"
    write_table(table, path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_is_small", lambda _: small)
        assert smallest_class(path, ("name", "n")) == min(Counter(rows).values(), default=None)


@pytest.mark.parametrize("small", [True, False])
def test_only_the_named_columns_make_a_tuple(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: bool) -> None:
    monkeypatch.setattr(module, "_is_small", lambda _: small)
    path = tmp_path / "data.parquet"
    write_table(pa.table({"a b": ["x", "x", "y", "y"], 'c"d': ["1", "2", "1", "2"]}), path)
    assert smallest_class(path, ("a b",)) == 2
    assert smallest_class(path, ("a b", 'c"d')) == 1
