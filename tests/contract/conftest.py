from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy that is a mapping belongs to the current folder, and what is remembered about its ledger goes there."""
    monkeypatch.chdir(tmp_path)
