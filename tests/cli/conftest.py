from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.running import Runner


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Runner:
    """Run a command in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("INCROWD_LEDGER", raising=False)
    return Runner(capsys)
