from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.running import Runner
from tests.journeys.walk import Walk


@pytest.fixture
def walk(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Walk:
    """Walk in an empty folder, before a terminal of 80 columns."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("INCROWD_LEDGER", raising=False)
    return Walk(Runner(capsys))
