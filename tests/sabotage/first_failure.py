"""A plugin of pytest that writes the first test that fails into the file that a variable names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REPORT = "SABOTAGE_REPORT"


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write down a test that fails."""
    _note(report)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Write down a file that cannot be read."""
    _note(report)


def _note(report: pytest.TestReport | pytest.CollectReport) -> None:
    path = Path(os.environ[REPORT])
    if report.failed and not path.read_text(encoding="utf-8"):
        path.write_text(report.nodeid, encoding="utf-8")
