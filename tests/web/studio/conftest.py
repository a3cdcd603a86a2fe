from __future__ import annotations

from pathlib import Path

import pytest

from tests.web.studio.visiting import Visitor, studio


@pytest.fixture(scope="module")
def inside(tmp_path_factory: pytest.TempPathFactory) -> Visitor:
    """A visitor of a studio that no test of a module changes."""
    return studio(tmp_path_factory.mktemp("studio")).come_in()


@pytest.fixture
def fresh(tmp_path: Path) -> Visitor:
    """A visitor of a studio that the test has for itself."""
    return studio(tmp_path).come_in()
