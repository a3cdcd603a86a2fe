"""Messy files in other languages, carried by clicks alone to a verified release that keeps the named column."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from incrowd.accounting.ledger.ledger import Ledger
from tests.browser.first_mile import FILES, TABLE, Journey, MessyFile, carry
from tests.browser.visiting import browsing, visiting

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROWS = 1500


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as started:
        yield started


@pytest.mark.parametrize("messy", FILES[1:], ids=[messy.name for messy in FILES[1:]])
def test_a_messy_file_is_carried_by_clicks_to_a_release_that_keeps_its_column(
    browser: Browser, tmp_path: Path, messy: MessyFile
) -> None:
    raw, folder = tmp_path / messy.name, tmp_path / "studio"
    messy.write(raw, ROWS)
    folder.mkdir()
    with visiting(browser, folder) as visit:
        journey = Journey(visit.tab())
        carry(journey, raw, messy, ROWS)
        assert visit.complaints == []
    released = pq.read_table(folder / "out" / "data.parquet")
    assert len(set(released[messy.column].to_pylist()) - {"*"}) > 1
    assert journey.clicks <= 11
    budget = Ledger.open(f"sqlite:///{folder / '.incrowd' / 'ledger.sqlite'}").standing(raw.stem).left
    assert budget is not None
    assert budget.epsilon > 1 - 1e-9  # the first draft spends half of its budget


def test_a_messy_file_is_carried_by_clicks_to_a_protected_table(browser: Browser, tmp_path: Path) -> None:
    raw, folder = tmp_path / TABLE.name, tmp_path / "studio"
    TABLE.write(raw, ROWS)
    folder.mkdir()
    with visiting(browser, folder) as visit:
        journey = Journey(visit.tab())
        carry(journey, raw, TABLE, ROWS, "A table with totals")
        assert visit.complaints == []
    cells = pq.read_table(folder / "out" / "data.parquet").to_pylist()
    states = {cell[TABLE.column] for cell in cells}
    assert {"Evli", "Bekar", "Dul", "Boşanmış", "Total"} <= states
    assert not any(cell["count"] is not None and 0 < cell["count"] < 11 for cell in cells)  # the public reads it
    assert any(cell["count"] is None for cell in cells)
    assert journey.clicks <= 11
